"""Published latencies of inference servers as files of kinds ttft and tpot."""

from pathlib import Path

from convert.schema import rows_of, write

DEVICES = {"h100_sxm": "h100_sxm5_80", "b200_sxm": "b200_sxm_180"}
MODELS = {"llama-3.1-70b": "llama3.1_70b", "llama-3.1-8b": "llama3.1_8b",
          "gpt-oss-120b": "gpt_oss_120b", "minimax-m2": "minimax_m2", "kimi-k2": "kimi_k2",
          "qwen3-32b": "qwen3_32b", "qwen3-235b": "qwen3_235b_a22b"}


def model_of(row):
    path = row["model_path"].lower()
    return next((name for part, name in MODELS.items() if part in path), None)


def weights_of(row, model):
    """The format of the weights, which the table calls by its bits."""
    if model == "gpt_oss_120b":
        return "mxfp4"
    block = model in ("minimax_m2", "qwen3_235b_a22b")
    # Rows that do not state it are in half precision: SGLang's with one GPU run out of blocks at 16 requests.
    return {"": "bf16", "fp4": "nvfp4", "fp8": "fp8_block" if block else "fp8"}.get(
        row["precision"], row["precision"])


def version_of(row):
    """Older rows of vLLM state a day alone; the newest version of that day is not known."""
    return row["backend_version"] or (
        ("0.11" if row["measured"] < "2026" else "0.16") if row["backend"] == "vllm" else "")


def cache_of(row, weights):
    """Not stated. Six full servers of vLLM on H100 held half as many tokens as FP8 leaves room for, as half precision does;
    one on B200 held what FP8 leaves room for."""
    half = weights == "bf16" or row["backend"] == "vllm" and row["system"] == "h100_sxm"
    return "bf16" if half else "fp8"


def attention_replicas(row):
    """`batch_size` is per attention replica (the source's notes), whose number some rows do not state."""
    if not row["concurrency"] or not row["batch_size"]:
        return 1
    return float(row["concurrency"]) / float(row["batch_size"])


def left_out(row, model):
    """Rows that say nothing about a prediction, or whose settings no job file expresses."""
    return (row["mode"] != "agg" or model is None or row["attention_dp_size"] not in ("", "1")
            or attention_replicas(row) != 1
            or row["backend_version"].startswith("nightly") or int(row["tp_size"]) > 8
            # Slower at less load: not usable, as the source's notes say.
            or (model == "gpt_oss_120b" and row["system"] == "h100_sxm"
                and row["concurrency"] == "512"))


def job_of(row, model):
    flight = int(float(row["concurrency"] or row["batch_size"]))
    prompt, output = int(row["isl"]), int(row["osl"])
    # InferenceMAX sends ten requests per request in flight. The other client is that of the source's own launch
    # scripts (aiperf): requests of equal length, 50 per request in flight. TTFT of SGLang and TensorRT-LLM agrees: their
    # requests wait for each other's prompts. That of vLLM does not: it is half of what equal requests would wait.
    known = not row["origin"].startswith("gap")
    equal = not known and row["backend"] in ("sglang", "trtllm")
    job = {"serve.model": model, "serve.framework": row["backend"],
           "serve.version": version_of(row),
           "serve.precision.weights": weights_of(row, model),
           "serve.precision.cache": cache_of(row, weights_of(row, model)),
           "serve.plan.tensor": row["tp_size"], "serve.plan.pipeline": row["pp_size"] or "1",
           "serve.plan.expert": max(1, int(row["moe_ep_size"] or 1)),
           "serve.load.closed": flight, "serve.load.requests": 10 * flight,
           "serve.load.input": prompt if equal else f"{{uniform: [{prompt * 4 // 5}, {prompt}]}}",
           "serve.load.output": output if equal else f"{{uniform: [{output * 4 // 5}, {output}]}}",
           "cluster.device": DEVICES[row["system"]], "cluster.devices_per_node": 8,
           "tpot_s": float(row["silicon_tpot_ms"]) / 1e3}
    if known or row["backend"] == "sglang":
        job["ttft_s"] = float(row["silicon_ttft_ms"]) / 1e3
    if known and row["backend"] == "vllm":
        # The published launch scripts of the client.
        job["serve.flags.prefix_cache"] = "false"
        if model == "llama3.1_70b":
            job["serve.flags.async_scheduling"] = "true"
        if model == "gpt_oss_120b" and row["backend_version"] >= "0.14":
            job["serve.flags.max_cudagraph_capture_size"] = 2048
    if known and row["backend"] == "trtllm" and not row["backend_version"]:
        # The recipes of 2025 set it by the prompt (recalled).
        job["serve.flags.max_num_tokens"] = (prompt + flight + 127) // 64 * 64
    if equal and row["backend"] == "trtllm":
        # The launch scripts of the source: 512 rows at least, and a prompt with some room, in blocks of 32.
        job["serve.flags.max_num_tokens"] = (max(512, 2 * flight) + prompt + 1500 + 31) // 32 * 32
    return job


def write_published(into):
    """Results of servers that their publishers describe with all settings. None gave a constant."""
    measures = ("ttft_s", "tpot_s", "output_tokens_per_s")
    rows = rows_of(Path(__file__).parents[1] / "published_servers.csv")
    for measure in measures:
        write(Path(into) / "serving" / f"published_{measure}.csv",
              [{column: cell for column, cell in row.items()
                if column == measure or column not in measures} | {"serve.plan.expert": 1}
               for row in rows if row[measure]])


def convert(data, into):
    write_published(into)
    path = Path(data) / "serving-silicon" / "silicon_dev.csv"
    if not path.exists():
        return
    seen, tables = set(), {True: [], False: []}
    for row in rows_of(path):
        model, key = model_of(row), (row["silicon_ttft_ms"], row["silicon_tpot_ms"])
        if left_out(row, model) or key in seen:
            continue
        seen.add(key)
        version = ".".join(version_of(row).split(".")[:2])
        # Qwen3 32B on vLLM and later versions of TensorRT-LLM on H100 gave no constant; all other rows did
        # (models/serving/servers.yaml).
        fitted = not (model == "qwen3_32b" and row["backend"] == "vllm"
                      or row["backend"] == "trtllm" and row["system"] == "h100_sxm" and version != "1.0")
        job = {"case": f"{row['backend']} {version} {row['system']}".replace("  ", " "),
               "name": row["id"], "use": "fitted" if fitted else "source_left_out"}
        job |= job_of(row, model)
        # Most requests wait for keys and values. Prompts of equal requests wait for each other, which is no saturation.
        if row["tp_size"] == "1" if row["backend"] == "sglang" else job.get("ttft_s", 0) > 2:
            job["case"] += ", above saturation"
        tables["ttft_s" in job].append(job)
    for known, rows in tables.items():
        write(Path(into) / "serving" / f"client_{'known' if known else 'unknown'}.csv", rows)
