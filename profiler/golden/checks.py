"""The first checks on a machine with a GPU. Each returns the lines to report; what is not as it
should be raises Failed.
"""

import bisect
import ctypes
import statistics
import time

from capture_file import read_folder
from run import Failed, Skipped


def _recorded(runner, name, words, timeout, **how):
    folder = runner.out / "checks" / name
    lines = runner.record(folder, words, timeout, **how)
    return lines, read_folder(folder)


def _largest(captures):
    if not captures:
        raise Failed("nothing was recorded: the library was not loaded")
    return captures[0]


def library(runner, timeout):
    """Which libcupti, who holds it, and whether everything comes to the file."""
    _, captures = _recorded(
        runner, "library", ["train.py", "mlp:64:tf32:eager", *runner.tiny], timeout, hook=True
    )
    capture = _largest(captures)
    facts = capture.facts()
    if "trouble" in facts:
        raise Failed(facts["trouble"])
    kernels, ranges = capture.table("kernel"), capture.ranges()
    if not kernels:
        raise Failed("no kernel was recorded")
    operators = sum("seq = " in row["text"] for row in ranges)
    modules = len(capture.ranges("rehearse.module"))
    steps = len(capture.ranges("rehearse.step"))
    if not capture.ended:
        raise Failed("the end of the process was not recorded")
    return [
        f"{key}: {value}" for key, value in sorted(facts.items())
    ] + [
        f"{len(kernels)} kernels, {operators} ranges of operators with a number, "
        f"{modules} of modules, {steps} of steps; the process ended in order"
    ]


def overhead(runner, timeout):
    """A launch-bound loop and a graph of 1000 kernels, without and with recording."""
    n = 200 if runner.mock else 3000
    said = []
    runs = {
        "without": None,
        "ranges alone": "device=off power=0",
        "with": "graph=node power=0",
        "with power": "graph=node power=20",
    }
    for title, options in runs.items():
        words = ["probes.py", "launches", n]
        if options is None:
            lines = runner.run(words, timeout)
        else:
            lines, _ = _recorded(runner, "launches", words, timeout, options=options)
        said.append(f"a launch {title}: {lines[-1]['us_per_launch']:.2f} us")
    for title, options in {
        "without": None,
        "by launch": "graph=launch power=0",
        "by node": "graph=node power=0",
    }.items():
        words = ["probes.py", "graph", 1000, 20]
        if options is None:
            lines = runner.run(words, timeout)
        else:
            lines, _ = _recorded(runner, "graph", words, timeout, options=options)
        said.append(f"a graph of 1000 kernels {title}: {lines[-1]['us_per_replay']:.0f} us")
    said.append(f"a range: {runner.ns_per_range():.1f} ns")
    return said


def steps(runner, timeout):
    """A step of ResNet-50 without recording, with it, and with the names of operators too."""
    words = ["train.py", "resnet50:128:tf32:eager", "--warm-up", 10, "--steps", 20, *runner.small]
    plain = runner.run(words, timeout / 3)[-1]["step_ms"]
    said = [f"without: {plain:.3f} ms"]
    for title, hook in (("with", False), ("with names of operators and modules", True)):
        lines, captures = _recorded(
            runner, "steps", words, timeout / 3, options="graph=node power=10", hook=hook
        )
        _largest(captures)
        took = lines[-1]["step_ms"]
        said.append(f"{title}: {took:.3f} ms, {took / plain - 1:+.2%}")
    return said


def records(runner, timeout):
    """Whether fields hold what they should: identities, order of times, tails of records."""
    _, captures = _recorded(
        runner, "records", ["train.py", "resnet50:32:tf32:eager", *runner.tiny], timeout, hook=True
    )
    capture = _largest(captures)
    kernels, calls = capture.table("kernel"), capture.table("call")
    if not kernels or not calls:
        raise Failed(f"{len(kernels)} kernels and {len(calls)} calls were recorded")
    begins = {call["correlation"]: call["start"] for call in calls}
    known = [k for k in kernels if k["correlation"] in begins]
    timed = [k for k in known if k["start"] > 0]
    causal = sum(k["start"] >= begins[k["correlation"]] for k in timed)
    threads = {row["thread"] for row in capture.rows}
    same = sum(call["thread"] in threads for call in calls)
    no_times = sum(k["start"] == 0 or k["end"] < k["start"] for k in kernels)
    said = [
        f"{len(known)} of {len(kernels)} kernels have their call",
        f"{causal} of {len(timed)} kernels start after their call begins",
        f"{same} of {len(calls)} calls are of a thread that has ranges",
        f"{no_times} kernels without times",
        f"{sum(k['block_x'] > 0 for k in kernels)} with a block, "
        f"{sum(k['registers'] > 0 for k in kernels)} with registers, "
        f"{sum(k['cluster_x'] > 0 for k in kernels)} with a cluster",
    ]
    devices = capture.table("device")
    if devices:
        d = devices[0]
        said.append(
            f"device: {d['name']}, {d['multiprocessors']} multiprocessors, "
            f"{d['memory_bytes'] / 2**30:.1f} GiB, {d['core_clock'] / 1e6:.0f} MHz"
        )
    if len(known) < 0.99 * len(kernels) or causal < 0.99 * len(timed) or no_times > 0:
        raise Failed("; ".join(said))
    return said


def events(runner, timeout):
    """Times of kernels against CUDA events."""
    lines, captures = _recorded(runner, "events", ["probes.py", "events", 8192], timeout)
    capture = _largest(captures)
    by_events = statistics.median(lines[-1]["ms"])
    longest = {}
    for kernel in capture.table("kernel"):
        longest.setdefault(kernel["name"], []).append((kernel["end"] - kernel["start"]) / 1e6)
    name, took = max(longest.items(), key=lambda entry: sum(entry[1]))
    by_record = statistics.median(took[-20:])
    difference = by_record / by_events - 1
    said = [
        f"a product of 8192: {by_events:.4f} ms by events, {by_record:.4f} ms by its record "
        f"({difference:+.2%})"
    ]
    if not runner.mock and abs(difference) > 0.02:
        raise Failed(said[0])
    return said


def threads_and_order(runner, timeout):
    """Whether a range holds the calls that were made in it."""
    captures = read_folder(runner.out / "checks" / "records")
    if not captures:
        raise Skipped("needs the check 'records'")
    capture = captures[0]
    steps = sorted((r["time"] - r["span"], r["time"]) for r in capture.ranges("rehearse.step"))
    starts = [begin for begin, _ in steps]
    inside = 0
    calls = capture.table("call")
    for call in calls:
        i = bisect.bisect_right(starts, call["start"]) - 1
        inside += i >= 0 and call["end"] <= steps[i][1] + 1000
    return [f"{inside} of {len(calls)} calls lie in one step"]


def nccl(runner, timeout):
    """A communicator of one GPU: does the plugin hear of its collectives."""
    lines, captures = _recorded(
        runner, "nccl", ["probes.py", "nccl", 0], timeout, options="channels power=0"
    )
    if lines[-1].get("absent"):
        raise Skipped("this PyTorch has no NCCL")
    capture = _largest(captures)
    rows = capture.table("collective")
    communicators = capture.table("communicator")
    ranges = capture.ranges("NCCL")
    channels = capture.table("collective_kernel")
    return [
        f"NCCL {lines[-1]['nccl']}: {lines[-1]['collectives']} collectives asked for; the plugin "
        f"told {len(rows)} and {len(communicators)} communicators, {len(channels)} channels; "
        f"{len(ranges)} ranges"
    ]


def nvml(runner, timeout):
    """What readings of the board cost."""
    try:
        lib = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Skipped("no libnvidia-ml.so.1 here") from None
    if lib.nvmlInit_v2() != 0:
        raise Failed("NVML does not start")
    device = ctypes.c_void_p()
    lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    said = []
    for title, call, into in (
        ("power", lib.nvmlDeviceGetPowerUsage, ctypes.c_uint()),
        ("energy", lib.nvmlDeviceGetTotalEnergyConsumption, ctypes.c_ulonglong()),
    ):
        took, values = [], []
        for _ in range(50):
            begin = time.perf_counter()
            code = call(device, ctypes.byref(into))
            took.append((time.perf_counter() - begin) * 1e6)
            values.append(into.value)
            time.sleep(0.005)
        changes = sum(a != b for a, b in zip(values, values[1:]))
        said.append(
            f"{title}: {statistics.median(took):.1f} us a reading, code {code}, {values[-1]}, "
            f"{changes} changes in {len(values)} readings 5 ms apart"
        )
    mode, pending = ctypes.c_uint(), ctypes.c_uint()
    code = lib.nvmlDeviceGetMigMode(device, ctypes.byref(mode), ctypes.byref(pending))
    said.append(f"MIG: {'on' if mode.value else 'off'} (code {code})")
    lib.nvmlShutdown()
    return said


def ends(runner, timeout):
    """What an end of the process leaves out."""
    said = []
    for way, code in (("normal", 0), ("_exit", 0), ("term", -15)):
        begin = time.perf_counter()
        lines, captures = _recorded(
            runner, "ends", ["probes.py", "ends", way], timeout, options="power=0", code=code
        )
        took = time.perf_counter() - begin
        capture = _largest(captures)
        launched, kernels = lines[0]["launched"], len(capture.table("kernel"))
        said.append(
            f"end by {way}: {kernels} of {launched} kernels, "
            f"{'in order' if capture.ended else 'cut short'}, {took:.1f} s"
        )
        if way == "normal" and (not capture.ended or kernels < launched):
            raise Failed(said[-1])
    return said


ALL = {
    "library": library,
    "overhead": overhead,
    "steps": steps,
    "records": records,
    "order": threads_and_order,
    "events": events,
    "nccl": nccl,
    "nvml": nvml,
    "ends": ends,
}
