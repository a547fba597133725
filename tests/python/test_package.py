"""The installed package: values, errors, interrupts, the handler of profiles, and the examples of docs/python.md."""

import collections.abc
import doctest
import gzip
import inspect
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import rehearse

SOURCE = Path(os.environ["REHEARSE_SOURCE"])
# Commands without a document.
NO_DOCUMENT = ("live", "init", "completion")
RECORDING = "examples/recordings/three_steps.json"
# Takes many seconds, and does not ask for signals meanwhile.
LONG = {"job": "examples/jobs/gpt_175b.yaml", "unfold": True, "fidelity": "message"}


def setUpModule():
    os.chdir(SOURCE)


def load_tests(loader, tests, pattern):
    tests.addTest(doctest.DocFileSuite(str(SOURCE / "docs/python.md"), module_relative=False, encoding="utf-8",
                                       setUp=lambda test: setUpModule(),
                                       optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE))
    return tests


class Values(unittest.TestCase):
    def test_keys_are_attributes_and_quantities_have_units_and_intervals(self):
        replay = rehearse.replay(RECORDING)
        step = replay.step_time.simulated
        self.assertIsInstance(step, rehearse.Quantity)
        self.assertEqual((step.unit, step.provenance), ("s", "recorded"))
        self.assertTrue(step.low < float(step) < step.high)
        self.assertAlmostEqual(step.value, 1e-3)  # of the recording
        self.assertIsNone(replay.step_time.measured.low)
        self.assertEqual(replay.path_parts[0].part, "matrix products")
        self.assertEqual(replay.path_parts[0]["from"].recorded, 1.0)  # no name in Python
        self.assertIn("breakdown", dir(replay))

    def test_a_field_that_is_absent_is_none_and_one_that_is_unknown_an_error(self):
        replay = rehearse.replay(RECORDING)
        self.assertIsNone(replay.slow_ranks)  # named by the page only
        self.assertNotIn("slow_ranks", replay)
        board = rehearse.inspect(RECORDING).ranks[0].steps[0]
        self.assertIsNone(board.energy_j)  # inside of another
        with self.assertRaises(KeyError):
            board["energy_j"]
        with self.assertRaises(AttributeError):
            replay.step_tme
        with self.assertRaises(AttributeError):
            replay.step_time.simulatd
        if sys.version_info >= (3, 10):
            ran = subprocess.run([sys.executable, "-c", f"import rehearse; rehearse.replay({RECORDING!r}).step_tme"],
                                 stderr=subprocess.PIPE, text=True)
            self.assertIn("Did you mean: 'step_time'?", ran.stderr)

    def test_a_notebook_shows_the_screen_and_the_breakdown(self):
        replay = rehearse.replay(RECORDING)
        page = replay._repr_html_()
        self.assertIn("step time, measured   1.00 ms", page)
        self.assertIn("width:60.00%", page)  # 600 us of computing in a step of 1000 us
        self.assertIn("compute 60.0%", page)
        self.assertTrue(str(replay).startswith("Step time 1.00 ms measured"))
        # 990 to 1010 us, on a scale from 0 to 1.05 × 1010 us
        self.assertIn("left:93.35%;width:1.89%", page)
        job = rehearse.simulate(model="llama3_8b", gpus=8, device="h100_sxm5_80", plan="tp8", batch=64, fidelity="closed")
        for figure in ("step time: ", "throughput: ", "memory per device: "):
            self.assertIn(figure, job._repr_html_())

    def test_results_and_errors_pass_between_processes(self):
        network = rehearse.network(device="h100_sxm5_80", sizes="1MiB")
        copy = pickle.loads(pickle.dumps(network))
        self.assertEqual(copy, network)
        self.assertEqual((copy.screen, copy.cautions), (network.screen, network.cautions))
        with self.assertRaises(rehearse.InputError) as caught:
            rehearse.replay("no_such_file.json")
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((error.file, str(error)), ("no_such_file.json", str(caught.exception)))

    def test_tables_become_data_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("no pandas (apt install python3-pandas)")
        points = rehearse.network(device="h100_sxm5_80", sizes="1MiB,2MiB").points
        frame = points.to_dataframe()
        self.assertEqual(list(frame.bytes), [2**20, 2**21])
        self.assertEqual(frame.time[0], points[0].time.value)
        self.assertTrue((frame.time_low < frame.time).all())
        self.assertEqual(frame.attrs["units"]["time"], "s")
        nested = rehearse.replay(RECORDING).ranks[0].steps.to_dataframe()
        self.assertIn("gpu.measured_s", nested.columns)
        whole = rehearse.replay(RECORDING)
        row = whole.to_dataframe()
        self.assertEqual((len(row), row["step_time.simulated"][0]), (1, whole.step_time.simulated.value))

    def test_a_quantity_with_further_keys_is_one(self):
        memory = rehearse.simulate(model="llama3_8b", gpus=8, device="h100_sxm5_80", plan="tp8", batch=64, fidelity="closed").memory_per_device
        self.assertEqual(float(memory), memory.value)
        self.assertRegex(str(memory), r"^[\d.e+]+ B \([\d.e+]+ – [\d.e+]+, extrapolated\)$")
        self.assertEqual(memory.verdict, "fits")


class Words(unittest.TestCase):
    def test_keywords_are_the_options_of_the_program(self):
        options = {o["name"] for c in self.help_of("simulate") for o in c["options"]}
        keywords = set(inspect.signature(rehearse.simulate).parameters)
        self.assertEqual({k.replace("_", "-") for k in keywords},
                         {o.lower() for o in options} - {"help"} | {"output", "report", "strict", "quiet", "allow-outside", "threads", "seed"})
        with self.assertRaises(TypeError):
            rehearse.simulate(modle="llama3_8b")

    def test_files_are_positional_as_often_as_the_program_takes_them(self):
        kinds = {name: [p.kind.name for p in inspect.signature(getattr(rehearse, name)).parameters.values()][0]
                 for name in ("replay", "prove", "simulate", "bench_gpu")}
        self.assertEqual(kinds, {"replay": "VAR_POSITIONAL", "prove": "VAR_POSITIONAL",
                                 "simulate": "POSITIONAL_OR_KEYWORD", "bench_gpu": "KEYWORD_ONLY"})
        self.assertTrue(rehearse.completion("bash", "replay", "--residu").screen.startswith("--residuals"))

    @staticmethod
    def help_of(command):
        return json.loads(subprocess.run(["rehearse", "help", command, "--format", "json"], check=True,
                                         stdout=subprocess.PIPE).stdout)["commands"]

    def test_a_list_repeats_an_option_and_a_quantity_has_its_unit(self):
        halved = rehearse.whatif(RECORDING, scale=["kernel=gemm*:0.5", "host:0.5"])
        self.assertLess(halved.step_time.value, rehearse.whatif(RECORDING, scale="kernel=gemm*:0.5").step_time.value)
        point = rehearse.network(device="h100_sxm5_80", sizes=rehearse.Quantity(2.5e5, "B")).points[0]
        self.assertEqual(point.bytes, 2.5e5)

    def test_a_path_may_be_bytes(self):
        self.assertEqual(rehearse.replay(os.fsencode(RECORDING)), rehearse.replay(RECORDING))

    def test_a_file_may_begin_with_a_dash(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(RECORDING, Path(folder) / "-a.json")
            os.chdir(folder)
            try:
                self.assertAlmostEqual(rehearse.replay("-a.json").step_time.measured.value, 1e-3)
            finally:
                os.chdir(SOURCE)


class Types(unittest.TestCase):
    @unittest.skipIf(sys.version_info < (3, 10), "unions of types are written as of 3.10")
    def test_types_are_those_of_the_options(self):
        self.assertTrue((Path(rehearse.__file__).parent / "py.typed").exists())
        document = json.loads(subprocess.run(["rehearse", "help", "--format", "json"], check=True,
                                             stdout=subprocess.PIPE).stdout)
        self.assertGreater(len(document["commands"]), 25)
        for command in document["commands"]:
            function = getattr(rehearse, {"import": "import_"}.get(command["name"], re.sub("[- ]", "_", command["name"])))
            hints = typing.get_type_hints(function)
            self.assertTrue(issubclass(hints["return"], rehearse.Result))
            self.assertEqual(hints["return"] is rehearse.Result, command["name"] in NO_DOCUMENT, command["name"])
            parameters = inspect.signature(function).parameters
            for option in command["options"]:
                name = re.sub("[- ]", "_", option["name"].lower())
                if name not in parameters:
                    continue  # test_keywords_are_the_options_of_the_program has which
                with self.subTest(command=command["name"], option=name):
                    self.assertEqual(hints[name] is bool, "value" not in option)
                    listed = parameters[name].kind is inspect.Parameter.VAR_POSITIONAL or any(
                        getattr(each, "__origin__", None) is collections.abc.Sequence for each in typing.get_args(hints[name]))
                    self.assertEqual(listed, bool(option.get("repeated")))

    def test_a_type_checker_knows_the_functions(self):
        if not shutil.which("mypy"):
            self.skipTest("no mypy (apt install mypy)")
        with tempfile.TemporaryDirectory() as folder:
            user = Path(folder) / "user.py"
            user.write_text("import rehearse\n"
                            "from pathlib import Path\n"
                            "replay: rehearse.Result = rehearse.replay(Path('a.json'), residuals=True)\n"
                            "handler = rehearse.on_trace_ready('traces', residuals=True)\n"
                            "rehearse.whatif('a.json', scale=['kernel:0.5', 'host:0.5'])\n"
                            "rehearse.simulate(modle='llama3_8b')\n"  # line 6
                            "rehearse.replay('a.json', residuals='yes')\n"  # line 7
                            "float(rehearse.Quantity('1'))\n"  # line 8
                            "result = rehearse.replay('a.json')\n"
                            "mean: float = result.step_time.simulated.value\n"
                            "largest: rehearse.Quantity = result.path_parts[0].ops[0].time\n"
                            "typed: rehearse.results.WhatifResult = rehearse.whatif('a.json')\n"
                            "if typed.notes:\n"
                            "    print(typed.notes[0], rehearse.simulate('a.yaml').memory_per_device.parts.weights.value)\n"
                            "result.step_tme\n"  # line 15
                            "result.step_time.value\n"  # line 16
                            "result.step_time.simulated + 1\n"  # line 17
                            "text: str = result.breakdown.compute\n"  # line 18
                            "typed.notes[0]\n"  # line 19: it may be None
                            "handler.results[0].stp_time\n"  # line 20
                            "print(rehearse.init('job').document)\n")  # line 21
            ran = subprocess.run(["mypy", "--strict", "--no-color-output", "--no-error-summary", "--hide-error-context",
                                  "--cache-dir", folder, "--python-executable", sys.executable, str(user)],
                                 stdout=subprocess.PIPE, text=True)
        wrong = [line.split(":")[1] for line in ran.stdout.splitlines() if "user.py" in line and ": error: " in line]
        self.assertEqual(wrong, ["6", "7", "8", "15", "16", "17", "18", "19", "20", "21"], ran.stdout)


class Errors(unittest.TestCase):
    def test_an_error_of_a_file_has_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "job.yaml"
            job.write_text("workload: {model: llama3_8b}\ntraining:\n  global_batch: 8\n  microbach: 2\n"
                           "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 1}\n")
            with self.assertRaises(rehearse.InputError) as caught:
                rehearse.simulate(job)
        error = caught.exception
        self.assertEqual((error.file, error.line, error.column), (str(job), 4, 3))
        self.assertEqual(error.key, "training.microbach")
        self.assertIn("microbatch", error.expected)
        self.assertTrue(str(error).startswith(f"{job}:4:3: training.microbach: "))
        self.assertEqual(error.errors[0]["problem"], error.problem)

    def test_wrong_usage_is_another_error(self):
        with self.assertRaises(rehearse.UsageError) as caught:
            rehearse.whatif(RECORDING, scale="kernel")
        self.assertTrue(str(caught.exception).startswith("--scale: 'kernel' has no FACTOR"))

    def test_a_program_that_is_killed_is_no_wrong_input(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "rehearse"
            program.write_text("#!/bin/sh\nkill -9 $$\n")
            program.chmod(0o755)
            with unittest.mock.patch("rehearse._program.PROGRAM", program), self.assertRaises(rehearse.Error) as caught:
                rehearse.replay(RECORDING)
        self.assertEqual((type(caught.exception), str(caught.exception)),
                         (rehearse.Error, "the program was ended by SIGKILL"))

    def test_a_check_that_fails_has_a_result(self):
        check = rehearse.check(baseline="examples/recordings/gate_before.json",
                               candidate="examples/recordings/gate_after.json", max_slowdown="3%")
        self.assertEqual(check.verdict, "fail")


class Processes(unittest.TestCase):
    def test_an_interrupt_ends_within_a_second(self):
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.5, interrupt)
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            rehearse.simulate(**LONG)
        self.assertLess(time.monotonic() - sent[0], 1.5)  # with the patience that the program's own test has

    def test_other_threads_go_on(self):
        thread = threading.Thread(target=rehearse.replay, args=(RECORDING,))
        thread.start()
        count = 0
        while thread.is_alive():
            count += 1
        self.assertGreater(count, 1000)

    def test_the_program_is_a_command_and_finds_its_files(self):
        capture = next(check for check in rehearse.doctor().checks if check.name == "capture")
        self.assertTrue(capture.ok, capture.detail)  # its library is a file of its own
        version = subprocess.run(["rehearse", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertTrue(version.startswith("rehearse "))


class Profile:
    """As torch.profiler.profile is for its handler."""

    def __init__(self, text):
        self.text = text

    def export_chrome_trace(self, path):
        with gzip.open(path, "wb") as file:
            file.write(self.text)


class Handler(unittest.TestCase):
    def test_a_profile_is_replayed_when_it_ends(self):
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as printed:
            handler = rehearse.on_trace_ready(folder, residuals=True)
            for _ in range(2):
                handler(Profile(Path(RECORDING).read_bytes()))
            self.assertEqual(sorted(os.listdir(folder)), ["rank0.0.json.gz", "rank0.1.json.gz"])
        self.assertEqual(printed.getvalue().count("Step time 1.00 ms measured"), 2)
        self.assertAlmostEqual(handler.results[1].step_time.measured.value, 1e-3)

    def test_a_profile_that_cannot_be_replayed_does_not_end_the_training(self):
        with redirect_stderr(io.StringIO()) as messages:
            handler = rehearse.on_trace_ready()
            handler(Profile(b"{"))
        self.assertIn("rank0.0.json.gz", messages.getvalue())
        self.assertEqual(handler.results, [])


if __name__ == "__main__":
    unittest.main()
