"""Published runs of servers under open loads: files of kinds ttft, tpot and output_rate, and their
traces of requests."""

import csv
import json
from pathlib import Path

from convert.schema import rows_of, write

PLANS = {"8TP": (8, 1), "4TP": (4, 1), "2TP": (2, 1), "2DP4TP": (4, 2), "4DP2TP": (2, 4)}
REPLAYED = {"RTX4090": "rtx4090", "RTXPRO6000": "rtx_pro_6000_server"}
# Requests that arrived before the server was full: 28 and 100 of 300.
RAMP = {"RTX4090": 28, "RTXPRO6000": 100}


def write_trace(path, requests):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["arrival_s", "input_tokens", "output_tokens"])
        writer.writerows([f"{at:.6f}", prompt, output] for at, prompt, output in requests)


def requests_of(folder, parts):
    """Those of all parts, in order of arrival: the source states nanoseconds."""
    return sorted((float(r["arrival"]) / 1e9, int(r["context_tokens"]), int(r["generated_tokens"]))
                  for path in parts for r in rows_of(folder / path))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def plan_rows(folder, traces):
    """vLLM 0.6.0 on eight H100. The sums of the parts of a plan agree with each other: latency =
    requests · ttft + tokens · tpot, so that tpot is per token of all, the first ones too."""
    runs = {}
    for row in rows_of(folder / "plans.csv"):
        # What the columns of SGLang mean is not known.
        if row["framework"] == "vllm":
            runs.setdefault((row["model"], row["workload"], row["rate_per_s"], row["plan"]),
                            []).append(row)
    for (model, workload, rate, plan), parts in runs.items():
        stem = f"trace_{model}_{workload}_{rate.replace('.', '')}"
        whole = folder / f"{stem}.csv.gz"
        requests = requests_of(folder, [whole.name] if whole.exists() else
                               [f"{stem}_4DP2TP_{i}.csv.gz" for i in range(4)])
        planned = sum(r[2] for r in requests)
        tokens = planned + sum(int(p["output_tokens_missing"]) for p in parts)
        count = len(requests)
        sent = [requests[i::len(parts)] for i in range(len(parts))]
        given = [sum(r[2] for r in s) + int(p["output_tokens_missing"])
                 for s, p in zip(sent, parts)]
        spent = sum(float(p["total_latency_s"]) for p in parts)
        first = sum(float(p["ttft"]) * len(s) for p, s in zip(parts, sent))
        later = sum(float(p["tpot"]) * n for p, n in zip(parts, given))
        if abs(first + later - spent) > 0.01 * spent:
            continue  # its columns contradict each other
        # Answers ended before the planned length. The source does not say which ones.
        share = tokens / planned
        name = f"{model}_{workload}_{rate}_{plan}"
        large = model == "mistral"
        write_trace(traces / f"{name}.csv", [(at, prompt, max(1, round(output * share)))
                                             for at, prompt, output in requests])
        tensor, data = PLANS[plan]
        flags = {"memory": "0.85" if large and tensor == 2 else "0.97"}
        # Contexts above 32,768 tokens turn chunks of 512 tokens on.
        if not large and tensor > 2:
            flags["chunked_prefill"] = "true"
        yield {"case": f"vllm 0.6 h100_sxm, {model} {workload}", "name": name,
               "use": "source_left_out" if large else "fitted",
               "group": f"{model} {workload} {plan}",
               "serve.model": "mistral_large" if large else "llama3.1_70b",
               "serve.framework": "vllm", "serve.version": "0.6.0",
               "serve.precision.weights": "fp8" if large else "bf16",
               "serve.precision.cache": "fp8" if large else "bf16",
               "serve.plan.tensor": tensor, "serve.plan.data": data,
               "serve.load.trace": f"../{traces.name}/{name}.csv",
               "cluster.device": "h100_sxm5_80", "cluster.devices_per_node": 8,
               "measured_at": "server", "ttft_s": first / count, "tpot_s": later / (tokens - count)
               } | {f"serve.flags.{key}": value for key, value in flags.items()}


def replay_rows(folder, traces):
    """vLLM 0.19 with Llama 3.1 8B: whole runs, which arrive faster than they are served, and the
    first tokens of the requests that arrived before the server was full."""
    for gpu, device in REPLAYED.items():
        stem = f"{gpu}__Llama-3.1-8B"
        meta = json.loads((folder / f"{stem}__meta.json").read_text())["engine_kwargs"]
        served = rows_of(folder / f"{stem}__requests.csv")
        at = {key: [float(r[f"{key}_s"]) for r in served] for key in
              ("arrival", "first_token", "last_token")}
        tokens = [int(r["output_tokens"]) for r in served]
        ttft = [first - sent for first, sent in zip(at["first_token"], at["arrival"])]
        tpot = [(last - first) / (n - 1) for first, last, n in
                zip(at["first_token"], at["last_token"], tokens)]
        job = {"serve.model": "llama3.1_8b", "serve.framework": "vllm", "serve.version": "0.19",
               "serve.flags.max_num_seqs": meta["max_num_seqs"],
               "serve.flags.max_num_batched_tokens": meta["max_num_batched_tokens"],
               "cluster.device": device, "cluster.devices_per_node": 1,
               "use": "source_left_out", "measured_at": "server"}
        for load, count in (("before it is full", RAMP[gpu]), ("above saturation", len(served))):
            name = f"{device}_{count}"
            write_trace(traces / f"{name}.csv",
                        [(at["arrival"][i], served[i]["input_tokens"], tokens[i])
                         for i in range(count)])
            row = {"case": f"vllm 0.19 replay, {load}", "name": name} | job | {
                "serve.load.trace": f"../{traces.name}/{name}.csv", "ttft_s": mean(ttft[:count])}
            if count == len(served):
                row["tpot_s"] = mean(tpot)
                row["output_tokens_per_s"] = sum(tokens) / (max(at["last_token"]) -
                                                            min(at["arrival"]))
            yield row


def convert(data, into):
    traces = Path(into) / "request_traces"
    for source, rows, name in (("serving-plans", plan_rows, "plans"),
                               ("serving-vllm-replays", replay_rows, "replays")):
        folder = Path(data) / source
        if folder.exists():
            if found := list(rows(folder, traces)):
                write(Path(into) / "serving" / f"{name}.csv", found)
