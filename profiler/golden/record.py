"""Records the wanted traces on this machine's GPU, after a few checks of the profiler itself.

profiler/record-golden calls this. Every item has a time limit; a failing one is said and the rest
goes on. What is done is kept, so that a second call goes on where the first stopped.
"""

import argparse
import contextlib
import datetime
import gzip
import json
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import time

import checks
from capture_file import read_folder
from run import ROOT, Failed, Runner, Skipped, build_library

WARM_UP, STEPS = 8, 5

# Trace, what train.py makes of it.
TRACES = {
    "mlp-b512": "mlp:512:tf32:eager",
    "alexnet-b256": "alexnet:256:tf32:eager",
    "vgg16-b64": "vgg16:64:tf32:eager",
    "resnet50-b32": "resnet50:32:tf32:eager",
    "resnet50-b64": "resnet50:64:tf32:eager",
    "resnet50-b128": "resnet50:128:tf32:eager",
    "resnet50-b256": "resnet50:256:tf32:eager",
    "resnet50-b64-fp32": "resnet50:64:fp32:eager",
    "resnet50-b64-bf16": "resnet50:64:bf16:eager",
    "bert-large-b32-bf16": "bert_large:32:bf16:eager",
    "gpt2-medium-b8-bf16": "gpt2_medium:8:bf16:eager",
    "gpt2-medium-b8-bf16-graphed": "gpt2_medium:8:bf16:graphed",
    "llama-blocks-b2-bf16": "llama_blocks:2:bf16:eager",
    "llama-blocks-b2-bf16-graphed": "llama_blocks:2:bf16:graphed",
    "dlrm-b2048": "dlrm:2048:tf32:eager",
    "moe-b8-bf16": "moe:8:bf16:eager",
    "loader-b64-bf16": "loader:64:bf16:eager",
    "llama-blocks-b2-bf16-compiled": "llama_blocks:2:bf16:compiled",
    "gpt2-medium-b8-bf16-compiled": "gpt2_medium:8:bf16:compiled",
}
LIMIT = {"check": 75, "plain": 30, "trace": 45, "compiled": 90, "power": 45, "bench": 75}
POWER_ITEM, POWER_STEPS = "resnet50:256:tf32:eager", 120


def items():
    """Every item: (kind, name), in the order in which they run."""
    return (
        [("check", name) for name in checks.ALL]
        + [("trace", name) for name in TRACES]
        + [("power", "power"), ("bench", "bench")]
    )


def mode_of(item):
    return item.rsplit(":", 1)[1]


def quoted(value):
    """A value of YAML that is on one line."""
    return json.dumps(value, ensure_ascii=False)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Golden:
    def __init__(self, arguments, runner):
        self.arguments, self.runner, self.out = arguments, runner, arguments.out
        self.begin = time.monotonic()
        self.failed, self.lines = [], []
        self.tiny = ["--tiny"] if arguments.mock else []
        runner.small = self.tiny
        runner.tiny = [*self.tiny, "--steps", "3", "--warm-up", "2"]
        self.state_file = self.out / "state.json"
        self.state = json.loads(self.state_file.read_text()) if self.state_file.exists() else {}

    def say(self, text):
        print(f"[{time.monotonic() - self.begin:5.0f} s] {text}", flush=True)

    def left(self):
        return self.arguments.budget - (time.monotonic() - self.begin)

    def keep(self, key, value):
        self.state[key] = value
        part = self.state_file.with_suffix(".part")
        part.write_text(json.dumps(self.state, indent=1))
        part.replace(self.state_file)

    # ------------------------------------------------------------------ items

    def run_items(self, chosen):
        traces = [name for kind, name in chosen if kind == "trace"]
        self.measure_plain([TRACES[name] for name in traces])
        for kind, name in chosen:
            if self.state.get(name, {}).get("done"):
                self.say(f"{name}: done before")
                continue
            limit = LIMIT["compiled" if mode_of(TRACES.get(name, ":")) == "compiled" else kind]
            if self.left() < min(limit, 15):
                self.failed.append(name)
                self.say(f"{name}: FAILED: no time left; call again to go on")
                continue
            limit = min(limit, self.left())
            try:
                said = getattr(self, "do_" + kind)(name, limit)
                self.keep(name, {"done": True, "said": said})
                for line in said:
                    self.say(f"{name}: {line}")
            except Skipped as why:
                self.keep(name, {"done": False, "said": [f"skipped: {why}"]})
                self.say(f"{name}: skipped: {why}")
            except Exception as error:  # one item must not take the others along
                self.failed.append(name)
                text = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
                self.keep(name, {"done": False, "said": [f"FAILED: {text}"]})
                self.say(f"{name}: FAILED: {text}")

    def measure_plain(self, wanted):
        """Steps without the profiler, many models in one process. Where one fails, without it."""
        left = [item for item in wanted if f"plain {item}" not in self.state]
        while left and self.left() > 15:
            limit = sum(
                LIMIT["compiled" if mode_of(item) == "compiled" else "plain"] for item in left
            )
            words = ["train.py", *left, "--warm-up", WARM_UP, "--steps", 2 * STEPS, *self.tiny]
            error = None
            try:
                lines = self.runner.run(words, min(limit, self.left() * 0.6))
            except Failed as failed:
                lines, error = getattr(failed, "lines", []), failed
            begun = [line["begins"] for line in lines if "begins" in line]
            for line in lines:
                if "item" in line:
                    self.keep(f"plain {line['item']}", line)
                    self.say(f"{line['item']}: {line['step_ms']:.3f} ms a step without profiler")
            left = [item for item in left if f"plain {item}" not in self.state]
            if error is None or not left:
                break
            self.say(f"{begun[-1] if begun else left[0]}: FAILED without profiler: {error}")
            left.remove(begun[-1] if begun and begun[-1] in left else left[0])

    def do_check(self, name, limit):
        return checks.ALL[name](self.runner, limit)

    def do_trace(self, name, limit):
        item = TRACES[name]
        plain = self.state.get(f"plain {item}")
        if plain is None:
            raise Failed("its step without the profiler is not measured")
        graphed = mode_of(item) == "graphed"  # Python does not see its steps; it marks them itself
        first = 0 if graphed else WARM_UP
        options = f"graph=node power=20 steps={first}:{first + STEPS}"
        words = ["train.py", item, "--warm-up", WARM_UP, "--steps", STEPS, *self.tiny]
        return self.record_trace(name, item, words, options, not graphed, limit, plain)

    def do_power(self, name, limit):
        item, steps = POWER_ITEM, 20 if self.arguments.mock else POWER_STEPS
        plain = self.state.get(f"plain {item}")
        options = f"graph=node power=50 steps={WARM_UP}:{WARM_UP + 2}"
        words = ["train.py", item, "--warm-up", WARM_UP, "--steps", steps, *self.tiny]
        return self.record_trace(name, item, words, options, True, limit, plain)

    def do_bench(self, name, limit):
        program = ROOT / "build" / "release" / "rehearse"
        if not program.exists():
            raise Skipped("build/release/rehearse is not built")
        if subprocess.run([program, "bench-gpu", "--help"], capture_output=True).returncode != 0:
            raise Skipped("rehearse has no bench-gpu that runs here")
        if self.arguments.mock:
            raise Skipped("the mock GPU computes nothing to measure")
        folder = self.out / "bench"
        folder.mkdir(exist_ok=True)
        shapes = pathlib.Path(__file__).with_name("shapes.yaml")
        store = folder / "operations.rehearse"
        command = [program, "bench-gpu", "--shapes", shapes, "--format", "csv", "-o", store]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        if done.returncode != 0:
            raise Failed(f"bench-gpu ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        (folder / "operations.csv").write_text(done.stdout)
        return [f"{max(0, done.stdout.count(chr(10)) - 1)} operations measured"]

    # ------------------------------------------------------------------ one trace

    def record_trace(self, name, item, words, options, hook, limit, plain):
        raw = self.out / "raw" / name
        lines = self.runner.record(raw, words, limit, options=options, hook=hook)
        result = next(line for line in lines if line.get("item") == item)
        captures = read_folder(raw)
        if not captures or not captures[0].table("kernel"):
            raise Failed("no kernel was recorded")
        capture = captures[0]
        folder = self.out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        total = 0
        for one in captures:
            if not one.table("kernel"):
                continue  # workers of the loader
            packed = folder / (name + ("" if one is capture else "-" + one.path.stem) + ".cap.gz")
            with gzip.GzipFile(packed, "wb", compresslevel=9, mtime=0) as file:
                file.write(one.path.read_bytes())
            total += packed.stat().st_size
        row = {
            "trace": name,
            "kernels": len(capture.table("kernel")),
            "calls": len(capture.table("call")),
            "ranges": len(capture.ranges()),
            "power_readings": len(capture.table("power")),
            "plain_ms": plain["step_ms"] if plain else None,
            "recorded_ms": result["step_ms"],
            "bytes": total,
        }
        row["overhead"] = result["step_ms"] / plain["step_ms"] - 1 if plain else None
        self.write_meta(folder, item, words, options, hook, capture, row, result)
        self.keep(f"row {name}", row)
        shutil.rmtree(raw, ignore_errors=True)
        share = f", {row['overhead']:+.1%}" if plain else ""
        return [
            f"{row['kernels']} kernels, {row['ranges']} ranges, {result['step_ms']:.3f} ms a "
            f"step{share}, {total / 1024:.0f} KiB" + board_text(capture.table("power"))
        ]

    def write_meta(self, folder, item, words, options, hook, capture, row, result):
        machine = self.machine()
        facts = capture.facts()
        power = capture.table("power")
        clocks = [p["core_clock"] / 1e6 for p in power if p["core_clock"] > 0]
        model, batch, dtype, mode = item.split(":")
        command = " ".join(["profiler/golden/" + words[0], *map(str, words[1:])])
        meta = {
            "job": f"{model}, batch {batch}, {dtype}, {mode}; random data, one GPU",
            "command": command,
            "recorded_with": f"capture library, options {options}"
            + (", PyTorch hook" if hook else ""),
            "recorded_on": now().date().isoformat(),
            "hardware": machine["hardware"],
            "driver": machine["driver"],
            "core_clock": f"{sum(clocks) / len(clocks):.0f} MHz, mean" if clocks else "not read",
            "software": f"PyTorch {machine['torch']}, CUDA {machine['cuda']}, cuDNN "
            f"{machine['cudnn']}, Python {machine['python']}, CUPTI of "
            f"{facts.get('cupti.version', 'an unknown version')}",
            "system": machine["system"],
            "records": "kernels, copies, calls, NVTX ranges, power",
            "parameters": result["parameters"],
            "memory": f"{result['memory_bytes'] / 2**30:.2f} GiB, the most that PyTorch held",
        }
        if row["plain_ms"]:
            meta["measured_step"] = f"{row['plain_ms']:.4f} ms"  # median, without the profiler
            meta["recorded_step"] = f"{row['recorded_ms']:.4f} ms"  # median, with it
        if self.arguments.mock:
            meta["caveat"] = "made with a mock GPU and a mock PyTorch: it measures nothing"
        text = "".join(f"{key}: {quoted(value)}\n" for key, value in meta.items())
        (folder / "meta.yaml").write_text(text)
        session = f"command: {quoted(command)}\noptions: {quoted(options)}\nexit_code: 0\n"
        if row["plain_ms"]:
            session += f"measured_step: {row['plain_ms'] / 1e3:.9f} s\n"
        session += f"overhead:\n  ns_per_range: {self.runner.ns_per_range():.1f}\n"
        if row["overhead"] is not None:
            session += f"  step_share: {row['overhead']:.5f}\n"
        (folder / "session.yaml").write_text(session)

    def machine(self):
        if "machine" not in self.state:
            machine = self.runner.run(["probes.py", "versions"], 60)[-1]
            machine["hardware"] = (
                f"{machine['gpu']}, {machine['multiprocessors']} multiprocessors, "
                f"{machine['memory_bytes'] / 2**30:.1f} GiB"
            )
            machine["driver"] = "a mock" if self.arguments.mock else driver_version()
            machine["system"] = platform.platform()
            self.keep("machine", machine)
        return self.state["machine"]

    # ------------------------------------------------------------------ results

    def write_results(self):
        """The summary, what goes into traces/README.md, and everything in one file."""
        rows = [self.state[f"row {name}"] for name in [*TRACES, "power"] if f"row {name}" in self.state]
        text = ["# What was recorded", ""]
        if "machine" in self.state:
            m = self.state["machine"]
            text += [f"{m['hardware']}; driver {m['driver']}; PyTorch {m['torch']}; {now().date()}", ""]
        text += [
            "| trace | kernels | ranges | step without (ms) | step with (ms) | overhead | size (KiB) |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for row in rows:
            plain = f"{row['plain_ms']:.3f}" if row["plain_ms"] else ""
            share = f"{row['overhead'] * 100:+.1f} %" if row["overhead"] is not None else ""
            text.append(
                f"| {row['trace']} | {row['kernels']} | {row['ranges']} | {plain} | "
                f"{row['recorded_ms']:.3f} | {share} | {row['bytes'] / 1024:.0f} |"
            )
        text += ["", "## Checks", ""]
        for _, name in items():
            for line in self.state.get(name, {}).get("said", []):
                text.append(f"- {name}: {line}")
        (self.out / "summary.md").write_text("\n".join(text) + "\n")

        index = ["| folder | job | hardware | recorded |", "|---|---|---|---|"]
        for row in rows:
            meta = {}
            for line in (self.out / row["trace"] / "meta.yaml").read_text().splitlines():
                key, value = line.split(": ", 1)
                meta[key] = json.loads(value)
            index.append(
                f"| [{row['trace']}]({row['trace']}) | {meta['job']} | {meta['hardware']} | "
                f"{meta['records']} |"
            )
        (self.out / "index.md").write_text("\n".join(index) + "\n")

        names = ["summary.md", "index.md", "state.json"] + [row["trace"] for row in rows]
        if (self.out / "bench").exists():
            names.append("bench")
        packed = self.out / "golden.tar.gz"
        with tarfile.open(packed, "w:gz") as archive:
            for name in names:
                archive.add(self.out / name, arcname=f"golden/{name}")
        size = packed.stat().st_size
        self.say(f"{len(rows)} traces, {size / 2**20:.2f} MiB in {packed}")
        if size > 14 * 2**20:
            self.failed.append("size")
            self.say("FAILED: more than 14 MiB: take fewer traces or steps")


def board_text(readings):
    """What the readings of the board say; power and energy are two counters that should agree."""
    readings = [r for r in readings if r["power"] > 0]
    if len(readings) < 2:
        return ""
    first, last = readings[0], readings[-1]
    seconds = (last["time"] - first["time"]) / 1e9
    mean = sum(r["power"] for r in readings) / len(readings) / 1e3
    by_energy = (last["energy"] - first["energy"]) / 1e3 / seconds
    return f"; {len(readings)} readings in {seconds:.1f} s, {mean:.0f} W mean, {by_energy:.0f} W by energy"


def driver_version():
    with contextlib.suppress(OSError):
        words = pathlib.Path("/proc/driver/nvidia/version").read_text().split()
        for word in words:
            if word.count(".") >= 1 and word[0].isdigit():
                return word
    return "unknown"


def main():
    parser = argparse.ArgumentParser(
        prog="profiler/record-golden",
        description="Checks the profiler on this machine's GPU and records the wanted traces.",
    )
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("golden"), help="folder")
    parser.add_argument("--only", action="append", metavar="NAME", help="this item; may be repeated")
    parser.add_argument("--list", action="store_true", help="the items, and nothing else")
    parser.add_argument("--budget", type=float, default=460, metavar="SECONDS", help="for everything")
    parser.add_argument("--library", type=pathlib.Path, help="a capture library that is built")
    parser.add_argument(
        "--mock", type=pathlib.Path, metavar="DIR", help="folder of a mock libcuda and libcupti"
    )
    arguments = parser.parse_args()
    names = [name for _, name in items()]
    if arguments.list:
        for kind, name in items():
            print(f"{name:32} {TRACES.get(name, kind)}")
        return 0
    for name in arguments.only or []:
        if name not in names:
            parser.error(f"no item {name}; --list shows them")
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.mock:
        arguments.mock = arguments.mock.resolve()
    try:
        library = arguments.library or build_library(arguments.out)
    except Failed as why:
        print(f"record-golden: {why}", file=sys.stderr)
        return 1
    runner = Runner(arguments.out, library.resolve(), arguments.mock)
    golden = Golden(arguments, runner)
    try:
        golden.machine()
    except Failed as why:
        print(f"record-golden: PyTorch cannot use a GPU here: {why}", file=sys.stderr)
        return 1
    chosen = [item for item in items() if not arguments.only or item[1] in arguments.only]
    golden.run_items(chosen)
    golden.write_results()
    if golden.failed:
        print(f"record-golden: failed: {', '.join(golden.failed)}", file=sys.stderr)
    return 1 if golden.failed else 0


if __name__ == "__main__":
    sys.exit(main())
