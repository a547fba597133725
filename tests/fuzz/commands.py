"""Runs commands on mutants of their text files, and on mutants of their own words.

    commands.py REHEARSE [--count N | --seconds N] [--seed N] [--one NUMBER] [--keep FOLDER]

Promises of every command, whatever the file holds:
  - It ends by itself within a time limit, with exit code 0, 1 or 2. Code 3 and signals are faults.
  - On failure stderr has a line that begins with `rehearse: ` or names the file; stdout has no result.
  - On success no number of the JSON is NaN or infinite, and stdout is one document.
  - No file other than the mutant is left in its folder.
A mutant depends on the seed and its number alone. A mutant that breaks a promise is kept.
"""

import argparse
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LONGEST = 60  # seconds of processor time for one command
HANG = 600  # seconds after which a command without that time counts as hanging, also on a loaded machine
MEMORY = 4 << 30  # bytes of address space

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

NCCL_LOG = """\
# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#  Rank  0 Group  0 Pid  100 on host device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  100 on host device  1 [0x01] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
"""

for exponent in range(10, 29):
    SIZE = 1 << exponent
    TIME = 18 + SIZE / 2.4e5  # us: a start-up time, and 240 GB/s
    RATE = SIZE / TIME / 1000
    NCCL_LOG += f"{SIZE:12d} {SIZE // 4:12d} float sum -1" + 2 * f" {TIME:9.2f} {RATE:7.2f} {RATE:7.2f} 0" + "\n"

CONFIG = json.dumps({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632,
    "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000,
    "max_position_embeddings": 2048, "tie_word_embeddings": False}, indent=1)

REQUESTS = "arrival_s,input_tokens,output_tokens\n" + "".join(
    f"{0.1 * i:.1f},{100 + 7 * i},{20 + i}\n" for i in range(12))

SERVED = """\
serve:
  model: llama3_8b
  framework: vllm
  precision: {weights: bf16, cache: bf16}
  plan: {tensor: 1}
  load: {trace: requests.csv}
cluster: {device: h100_sxm5_80, devices_per_node: 1, nodes: 1}
"""

STUDY = """\
name: small
system: none
source: "made up"
source_kind: page
about: >-
  Images per second.
fidelity: closed
sweep:
  gpus: [1, 2]
base:
  workload: {model: resnet50}
  training: {microbatch: 32, dtype: fp32, optimizer: sgd, global_batch: $(gpus * 32)}
  plan: {data: $gpus}
  cluster: {device: p100_pcie_16, devices_per_node: 1, nodes: $gpus,
            inter_node: {kind: switch, links: 1, rate: 10 GB/s, latency: 1.5 us, network: tcp}}
jobs:
  all: {}
measure:
  images: throughput(all)
expect:
  - {measure: images, over: gpus, published: {1: 138.2, 2: 264.6}, tolerance: 0.1}
"""

# Commands whose own words are mutated. Each lasts less than a second.
EXAMPLES = os.path.join(ROOT, "examples")
WORDS = [words.replace("@", EXAMPLES) for words in (
    "simulate --model llama3_8b --gpus 16 --device h100_sxm5_80 --batch 64 --plan tp2,pp2 --sequence 4096",
    "simulate --model gpt2_xl --gpus 8 --device a100_sxm4_80 --batch 32 --plan zero=2 --fidelity message",
    "plan --model gpt2_xl --gpus 4 --device a100_sxm4_80 --batch 16 --fidelity closed --within memory=60GiB --risk 0.9",
    "network --device h100_sxm5_80 --ranks 16 --network infiniband,rate=50GB/s,latency=5us --op all_reduce,all_gather "
    "--sizes 1KiB:1MiB --protocol ll",
    "fleet @/fleets/four_jobs.csv --nodes 2 --gpus-per-node 4 --policy shortest --preempt --restart 30s --checkpoint 5min",
    "whatif @/recordings/two_linears.json --scale kernel=*gemm*:0.5 --straggler 0:1.2 --insert gpu:50us --remove kernel=*gelu*",
    "whatif @/recordings/two_gradients.json --network latency=5us,rate=100GB/s "
    "--data-parallel 4 --bucket 25MiB",
    "whatif @/recordings/two_linears.json --share-with @/recordings/two_linears.json --share timeslice:2ms,100us",
    "check --baseline @/recordings/gate_before.json --candidate @/recordings/gate_after.json --max-slowdown 5%",
    "whatif @/recordings/late_gradient.json --sum-order reverse --bucket 4MiB",
    "whatif @/recordings/two_linears.json --input-pipeline workers=2,prefetch=2,load=Optimizer*",
    "input @/pipelines/two_workers.yaml --seed 7",
    "mig layouts --device a100_sxm4_40",
    "explain tensor", "catalog gpus")]

BUDGET = """\
step_time: +3%
ops:
  "gemm_*": +10%
"""

MEASURED_JOBS = """\
name,workload.model,workload.sequence,training.global_batch,plan.data,plan.zero,cluster.device,cluster.devices_per_node,cluster.nodes,cluster.intra_node,step_s
a,llama3_8b,2048,8,8,3,h100_sxm5_80,8,1,nvswitch,0.52
b,llama3_8b,2048,16,8,1,h100_sxm5_80,8,1,nvswitch,0.9
"""


def example(path):
    with open(os.path.join(ROOT, "examples", path), encoding="utf-8") as file:
        return file.read()


def cases():
    """(name of the mutated file, its text, other files, words of the command). Without a name, the text is the
    words of the command, one a line."""
    closed = ["--fidelity", "closed"]
    for job in ("gpt_175b", "gpt2_xl_mixed", "llama_3b_host", "resnet50_fed", "serve_llama3_70b"):
        extra = {"../pipelines/imagenet_s3.yaml": example("pipelines/imagenet_s3.yaml")} if "fed" in job else {}
        words = ["simulate", "FILE"] + ([] if "serve" in job else closed)
        yield "job.yaml", example(f"jobs/{job}.yaml"), extra, words
    yield "job.yaml", SERVED, {"requests.csv": REQUESTS}, ["simulate", "FILE"]
    yield "requests.csv", REQUESTS, {"job.yaml": SERVED}, ["simulate", "OTHER/job.yaml"]
    yield "config.json", CONFIG, {}, ["simulate", "--model", "FILE", "--gpus", "8", "--device", "h100_sxm5_80",
                                      "--batch", "64"] + closed
    yield "cluster.yaml", example("clusters/dgx_h100_x4.yaml"), {}, [
        "network", "--cluster", "FILE", "--op", "all_reduce", "--sizes", "1MiB"]
    yield "cluster.yaml", example("clusters/in_full.yaml"), {}, ["inspect", "--cluster", "FILE"]
    yield "dataflow.yaml", example("dataflows/hgt.yaml"), {}, ["simulate", "FILE"]
    yield "pipeline.yaml", example("pipelines/two_workers.yaml"), {}, ["input", "FILE"]
    yield "jobs.csv", example("fleets/four_jobs.csv"), {}, ["fleet", "FILE", "--nodes", "2"]
    yield "shapes.yaml", example("shapes/gpt2.yaml"), {}, ["bench-gpu", "--shapes", "FILE"]
    yield "all_reduce.log", NCCL_LOG, {}, ["calibrate", "nccl", "FILE", "--device", "h100_sxm5_80"]
    yield "jobs.csv", MEASURED_JOBS, {}, ["validate", "FILE"]
    yield "budget.yaml", BUDGET, {}, [
        "check", "--baseline", os.path.join(ROOT, "examples/recordings/gate_before.json"),
        "--candidate", os.path.join(ROOT, "examples/recordings/gate_again.json"), "--budget", "FILE"]
    for recording in ("three_steps.json", "two_linears.json", "slow_rank.csv"):
        yield "trace" + os.path.splitext(recording)[1], example("recordings/" + recording), {}, ["replay", "FILE"]
    yield "trace.json", example("recordings/attention.json"), {}, ["inspect", "FILE", "--workload"]
    yield "pack.yaml", example("fleets/pack.yaml"), {}, ["pack", "FILE"]
    yield "study.yaml", STUDY, {}, ["study", "FILE"]
    yield "steps.csv", example("sharing/steps.csv"), {}, ["mig", "predict", "FILE", "--device", "a100_sxm4_40"]
    yield "groups.json", example("chakra/transformer.groups.json"), {}, [
        "simulate", "--chakra", EXAMPLES + "/chakra/transformer.et", "--ranks", "32", "--cluster",
        EXAMPLES + "/clusters/dgx_h100_x4.yaml", "--comm-groups", "FILE"]
    yield "system.json", example("astra-sim/system.json"), {}, [
        "simulate", "--chakra", EXAMPLES + "/astra-sim/all_reduce.et", "--astra-network",
        EXAMPLES + "/astra-sim/network.yml", "--astra-system", "FILE"]
    for words in WORDS:
        yield None, words.replace(" ", "\n"), {}, None


TOKENS = ["0", "-1", "1e-320", "1e308", "4294967296", "18446744073709551616", "9" * 40, "nan", "inf", "null", "true",
          "~", "[]", "{}", '""', '"', "\\u0000", "\x1b[31m", "\u202e", "x" * 5000, "../../etc/passwd", "1 GB", "100Gb/s",
          "- ", ": ", "&a *a", "!!binary x", "|", "\t", "\r\n", ","]


def mutant(text, rng):
    for _ in range(1 + rng.randrange(3)):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(8)
        numbers = list(re.finditer(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", text))
        if kind <= 2 and numbers:  # a number becomes another, or a text
            one = rng.choice(numbers)
            other = rng.choice(TOKENS[:16] + [str(rng.randrange(10 ** rng.randrange(1, 19)))])
            text = text[:one.start()] + other + text[one.end():]
            continue
        if kind == 3:
            del lines[at]
        elif kind == 4:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 5:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + rng.choice(TOKENS) + lines[at][place:]
        elif kind == 6:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines = lines[:at + 1]
        text = "\n".join(lines)
    return text


def not_finite(value):
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(not_finite(v) for v in value.values())
    return isinstance(value, list) and any(not_finite(v) for v in value)


def broken_promise(run, name):
    """The promise that a finished run broke; None if it kept all."""
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"more than {LONGEST} s of processor time"
    if run.returncode not in (0, 1, 2):
        return f"exit code {run.returncode}"
    errors = run.stderr.decode("utf-8", "replace")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", errors):
        return "stderr has control characters"
    if run.returncode == 0 or run.stdout:  # a command that finds a failure prints its document, too
        try:
            result = json.loads(run.stdout)
        except ValueError as error:
            return f"stdout is not JSON: {error}"
        if not_finite(result):
            return "a number is not finite"
        if run.returncode == 0:
            return None
    if not run.stdout and not re.search(rf"^rehearse: |{re.escape(name or 'rehearse: ')}", errors, re.M):
        return "no line says what is wrong"
    if max(map(len, errors.split("\n"))) > 8000:
        return "a line of stderr has more than 8,000 characters"
    return None


def set_limits():
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run_case(program, case, text, keep, succeeds=False):
    """(broken promise or None, words): runs the command of a case with this text as its file."""
    name, _, others, words = case
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "in", "jobs")
        os.makedirs(folder)
        files = dict(others)
        if name:
            files[name] = text
        for path, contents in files.items():
            target = os.path.normpath(os.path.join(folder, path))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.write(contents)
        before = sorted(os.listdir(folder))
        if name:
            mutated = os.path.join(folder, name)
            words = [mutated if w == "FILE" else w.replace("OTHER", folder) for w in words]
        else:
            words = text.split("\n")
        try:
            run = subprocess.run([program, "--allow-outside", *words, "--format", "json", "--threads", "1"], cwd=folder, timeout=HANG,
                                 stdin=subprocess.DEVNULL, capture_output=True, check=False, preexec_fn=set_limits)
            fault = broken_promise(run, name) if not succeeds or run.returncode == 0 else run.stderr.decode()
        except subprocess.TimeoutExpired:
            fault = f"no end within {HANG} s"
        if not fault and sorted(os.listdir(folder)) != before:
            fault = "it left a file"
        if fault:
            os.makedirs(keep, exist_ok=True)
            shutil.copytree(os.path.join(top, "in"), os.path.join(keep, "in"), dirs_exist_ok=True)
        return fault, " ".join(words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", type=int)
    parser.add_argument("--keep", default="findings")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    all_cases = list(cases())
    for case in all_cases if options.one is None else []:  # a case that fails unchanged would test nothing
        needs_gpu = case[3] and case[3][0] == "bench-gpu"  # reads its file first
        fault, words = run_case(options.program, case, case[1], options.keep, succeeds=not needs_gpu)
        if fault:
            sys.exit(f"unchanged: {words}: {fault}")
    end = time.monotonic() + options.seconds if options.seconds else None
    number, failed = options.one or 0, 0
    while True:
        rng = random.Random(f"{options.seed} {number}")
        case = all_cases[number % len(all_cases)]
        text = mutant(case[1], rng)
        fault, words = run_case(options.program, case, text, os.path.join(options.keep, f"{options.seed}-{number}"))
        if fault:
            failed += 1
            print(f"mutant {number} of seed {options.seed}: {words}: {fault}", flush=True)
        number += 1
        if options.one is not None or (time.monotonic() > end if end else number >= options.count):
            break
    print(f"{number} mutants of commands, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
