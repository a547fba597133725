"""Kernels alone and during a collective in public recordings: python3 -m overlapped DATA.

Fits the law of models/comm/interference.h, with each recording left out, and prints the tables of
docs/concepts/contention.md. A pair is one kernel (name, blocks, threads, shapes of its operator): the median
of its times without any other kernel, and of those within one collective. Kernels whose times alone differ
by more than 35 % are left out, and those with one time alone.
"""

import bisect
import collections
import glob
import gzip
import json
import math
import os
import statistics
import sys

Pair = collections.namedtuple("Pair", "alone times during share")

# Recording: its files, and the multiprocessors of its GPU.
RECORDINGS = {
    "DeepSeek, H800": ("deepseek-profile-h800/train.json.gz", 132),
    "convolutions, A100": ("hta-kineto/nccl_parser_config__nccl_data.json.gz", 108),
    "recommender, A100": ("hta-kineto/trace_diff__control__control.json.gz", 108),
    "recommender, A100 (sampled)": ("hta-kineto/trace_filter__sampled_rank-0.json.gz", 108),
    "DLRM, V100": ("param-dlrm-8rank-v100/kineto/*.gz", 80),
    "ResNet, MI300X": ("tracelens-h100-mi300/mi300__resnet_act_checkpoint.json.gz", 304),
}
COLLECTIVES = ("nccl", "internode::combine", "internode::dispatch")
PER_SHARE = [i / 4 for i in range(7)]  # candidates
PER_KERNEL = [5 * i for i in range(5)]  # us


def overlap(spans, starts, begin, end):
    """The time of [begin, end) within ascending spans."""
    sum_, i = 0, max(0, bisect.bisect_right(starts, begin) - 1)
    while i < len(spans) and spans[i][0] < end:
        sum_ += max(0, min(end, spans[i][1]) - max(begin, spans[i][0]))
        i += 1
    return sum_


def pairs(path, multiprocessors):
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    kernels, shapes = [], {}
    for event in events:
        args, kind = event.get("args") or {}, event.get("cat", "").lower()
        number = args.get("External id", args.get("external id"))
        if event.get("ph") != "X":
            continue
        if kind in ("cpu_op", "operator") and number is not None:
            shapes[number] = str(args.get("Input Dims") or args.get("Input dims") or "")
        if kind in ("kernel", "gpu_memcpy", "memcpy"):
            begin = event["ts"]
            kernels.append((begin, begin + event.get("dur", 0), event["name"], kind, args, number))
    kernels.sort(key=lambda kernel: kernel[:2])
    is_collective = [any(c in kernel[2].lower() for c in COLLECTIVES) for kernel in kernels]
    collectives = [k for k, is_one in zip(kernels, is_collective) if is_one]
    spans, starts = {}, {}
    for kernel, is_one in zip(kernels, is_collective):
        stream = "collectives" if is_one else kernel[4].get("stream")
        spans.setdefault(stream, []).append(kernel[:2])
    for stream, of in spans.items():
        starts[stream] = [span[0] for span in of]
    alone, during = collections.defaultdict(list), collections.defaultdict(list)
    for (begin, end, name, kind, args, number), is_one in zip(kernels, is_collective):
        blocks, length = args.get("grid"), end - begin
        if is_one or kind != "kernel" or length <= 0 or blocks is None:
            continue
        others = [s for s in spans if s not in ("collectives", args.get("stream"))]
        if any(overlap(spans[s], starts[s], begin, end) > 0.02 * length for s in others):
            continue
        key = (name, str(blocks), str(args.get("block")), shapes.get(number, ""))
        within = [c for c in collectives if c[0] <= begin + 1 and c[1] >= end - 1]
        if within:
            blocks_of = within[0][4].get("grid") or [0]
            during[key].append((length, math.prod(blocks_of) / multiprocessors))
        elif not any(c[0] < end and c[1] > begin for c in collectives):
            alone[key].append(length)
    found = []
    for key, times in during.items():
        own = alone[key]
        if len(own) < 2 or max(own) - min(own) > 0.35 * statistics.median(own):
            continue
        pair = Pair(statistics.median(own), len(times), *map(statistics.median, zip(*times)))
        if 0.4 < pair.during / pair.alone < 4:  # other work under one name
            found.append(pair)
    return found


def predicted(pair, per_share, per_kernel):
    return pair.alone * (1 + per_share * pair.share) + per_kernel * pair.share


def mean_error(rows, law):
    return statistics.mean(abs(math.log(predicted(r, *law) / r.during)) for r in rows)


def sum_error(rows, law):
    return sum(predicted(r, *law) * r.times for r in rows) / sum(r.during * r.times for r in rows) - 1


def main(data):
    rows = {}
    for name, (files, multiprocessors) in RECORDINGS.items():
        paths = sorted(glob.glob(os.path.join(data, files)))
        rows[name] = [pair for path in paths for pair in pairs(path, multiprocessors)]
    laws = [(a, b) for a in PER_SHARE for b in PER_KERNEL]

    def fit(left_out):
        return min(laws, key=lambda law: statistics.mean(
            mean_error(of, law) for name, of in rows.items() if name != left_out))

    print("| recording | kernels | share | loss | error of none | of 1.1 | fitted without it | its error "
          "| error of the law | of its sum |")
    print("|---|---:|---:|---:|---:|---:|---|---:|---:|---:|")
    law = (0.5, 10)
    for name, of in rows.items():
        left = fit(name)
        loss = 1 / (1 + sum_error(of, (0, 0))) - 1
        scalar = statistics.mean(abs(math.log(1.1 * r.alone / r.during)) for r in of)
        print(f"| {name} | {len(of)} | {statistics.median(r.share for r in of):.2f} | {loss:+.0%} | "
              f"{mean_error(of, (0, 0)):.0%} | {scalar:.0%} | {left[0]}, {left[1]} us | "
              f"{mean_error(of, left):.0%} | {mean_error(of, law):.0%} | {sum_error(of, law):+.0%} |")


if __name__ == "__main__":
    main(sys.argv[1])
