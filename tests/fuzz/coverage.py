"""Prints how much of each reader its fuzzer reached: a Markdown table, as docs/reliability.md has it.

    coverage.py FUZZER CORPUS FINDINGS

FUZZER is the program of the preset `fuzz`, CORPUS tests/fuzz/corpus, and FINDINGS the
folder of a soak: its logs have the number of executions, and its folders corpus-READER the inputs that
reached new code. Coverage is that of both corpora: the edges between basic blocks that begin in a line of
a reader's sources, of functions that were never entered too.
"""

import array
import os
import re
import subprocess
import sys
import tempfile

# The paths, as regular expressions, with which the sources begin that a target is for.
SOURCES = {
    "astra_network": "sim/cluster/astra_network.cc", "astra_system": "profiler/ingest/astra_system.cc",
    "budget": "cli/check/budget.cc", "calibration": "models/comm/calibration.cc",
    "capture": "profiler/ingest/capture", "chakra": "profiler/ingest/chakra.cc",
    "chakra_job": "profiler/ingest/chakra_program.cc", "cluster": "sim/cluster/read_cluster.cc",
    "comm_groups": "profiler/ingest/comm_groups.cc", "csv": "sim/base/csv.cc",
    "dataflow": "models/dataflow/read_dataflow.cc", "edits": "profiler/replay/edit.cc",
    "execution_trace": "profiler/ingest/execution_trace.cc", "graph": "models/store/graph.cc",
    "history": "cli/check/run_store.cc", "input": "profiler/ingest/input.cc", "jax": "profiler/ingest/jax.cc",
    "job": "cli/config/job_file.cc", "job_list": "sim/fleet/job_list.cc",
    "job_table": "cli/validation/job_rows.cc", "journal": "sim/work/journal.cc",
    "keys": "models/store/key_stream.cc", "kineto": "profiler/ingest/kineto",
    "link": "sim/cluster/point_to_point.cc", "model": "models/workload/(hugging_face|read_model)",
    "nccl_log": "cli/calibrate/nccl_log.cc", "nsys": "profiler/ingest/nsys",
    "op_table": "profiler/ingest/op_table.cc", "pack_file": "cli/config/pack_file.cc",
    "pair": "cli/proving/pair.cc", "pair_law": "models/sharing/shipped_pairs.cc",
    "pipeline": "models/input/read_pipeline.cc", "rented": "cost/(carbon|interruptions|prices)",
    "requests": "cli/config/request_trace.cc", "rocprof_csv": "profiler/ingest/rocprof",
    "rocprof_json": "profiler/ingest/rocprof", "saved": "cli/(comparing/side|validation/baseline)",
    "serve": "cli/config/serve_(file|load).cc",
    "serving_result": "cli/validation/serving_results.cc", "shapes": "profiler/bench/shape_file.cc",
    "store": "profiler/trace/(read_store|store_)", "study": "cli/study/study.cc",
}


def executions(log):
    """The executions that all workers of a log report."""
    if not os.path.exists(log):
        return 0
    with open(log, encoding="utf-8", errors="replace") as file:
        return sum(map(int, re.findall(r"stat::number_of_executed_units: (\d+)", file.read())))


def edges(fuzzer, reader, corpora):
    """All edges of the program, as (address, whether the inputs of folders reach it)."""
    with tempfile.NamedTemporaryFile() as covered:
        subprocess.run([fuzzer, "-runs=0", *filter(os.path.isdir, corpora)], check=True,
                       env=dict(os.environ, READER=reader, COVERED=covered.name),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = array.array("Q", covered.read())
    return [(row & ~(1 << 63), row >> 63) for row in rows]


def sources_of(fuzzer, addresses):
    """The source file of each address."""
    lines = subprocess.run(["llvm-symbolizer", "--obj=" + fuzzer, "--functions=none", "--no-inlines",
                            "--output-style=GNU"], check=True, input="\n".join(map(hex, addresses)),
                           stdout=subprocess.PIPE, text=True).stdout.split("\n")
    return [line.rsplit(":", 1)[0] for line in lines if line]


def main(fuzzer, corpus, findings):
    print("| reader | executions | of | edges reached |\n|---|---:|---|---:|")
    sums = [0, 0, 0]
    files = None
    for reader in sorted(os.listdir(corpus)):
        count = executions(os.path.join(findings, reader + ".log"))
        source = SOURCES[reader]
        shown = source.replace("(", "{").replace(")", "}").replace("|", ",")
        rows = edges(fuzzer, reader, [os.path.join(findings, "corpus-" + reader), os.path.join(corpus, reader)])
        files = files or sources_of(fuzzer, [address for address, _ in rows])
        is_own = re.compile("/" + source).search
        own = [reached for (_, reached), file in zip(rows, files) if is_own(file)]
        sums = [sums[0] + count, sums[1] + sum(own), sums[2] + len(own)]
        print(f"| {reader} | {count:,} | `{shown}` | {sum(own):,} of {len(own):,} "
              f"({100 * sum(own) / len(own):.0f} %) |", flush=True)
    print(f"| all | {sums[0]:,} | | {sums[1]:,} of {sums[2]:,} ({100 * sums[1] / sums[2]:.0f} %) |")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
