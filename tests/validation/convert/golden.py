"""Golden values of Megatron-LM's functional tests as a file of kind memory: bytes allocated on the
last rank, workspaces included, the contexts and the allocator's reserve not."""

from pathlib import Path

from convert.jobs import Job, LeftOut, count
from convert.schema import columns_of, rows_of, write

COLUMNS = ("mem_max_max", "use-distributed-optimizer", "attention-backend")
DEVICES = {"a100": "a100_sxm4_80", "h100": "h100_sxm5_80", "gb200": "gb200_186"}
# Entries of the tokenizers' files, and those that T5 adds.
VOCABULARIES = {"bpe/vocab.json": 50257, "bert-large-cased-vocab.txt": 28996, "vocab.txt": 30522}
T5_SENTINELS = 100
# Arguments of models and plans that no job expresses.
UNUSUAL = (
    "hybrid-layer-pattern", "multi-latent-attention", "mtp-num-layers",
    "decoder-first-pipeline-num-layers", "account-for-loss-in-pipeline-split",
    "pipeline-model-parallel-layout", "fine-grained-activation-offloading",
    "recompute-granularity", "cuda-graph-impl", "enable-cuda-graph",
    "data-parallel-sharding-strategy", "num-distributed-optimizer-instances")


def is_on(row, option):
    return row[option] == "True"


def degree(row, option):
    return int(row[option] or 1)


def vocabulary(row, tensor):
    """Padded to a multiple of 128 times the tensor degree."""
    entries = int(row["vocab-size"] or 0)
    if row["tokenizer-type"] == "TikTokenizer":
        entries = 2 ** 17
    for file, size in VOCABULARIES.items():
        if not entries and row["vocab-file"].endswith(file):
            entries = size + (T5_SENTINELS if row["suite"] == "t5" else 0)
    if not entries:
        raise LeftOut("a vocabulary of unknown size")
    multiple = int(row["make-vocab-size-divisible-by"] or 128) * tensor
    return -(-entries // multiple) * multiple


def shape(row, tensor):
    """The model, and what of it Megatron-LM's arguments leave to their defaults."""
    hidden, gated = int(row["hidden-size"]), is_on(row, "swiglu")
    bias = "false" if is_on(row, "disable-bias-linear") else "true"
    feed_forward = int(row["ffn-hidden-size"] or (hidden * 8 // 3 // 64 * 64 if gated
                                                  else 4 * hidden))
    model = {
        "hidden": hidden, "layers": int(row["num-layers"] or row["encoder-num-layers"]),
        "heads": int(row["num-attention-heads"]),
        "kv_heads": int(row["num-query-groups"] or row["num-attention-heads"]),
        "head_size": int(row["kv-channels"] or hidden // int(row["num-attention-heads"])),
        "feed_forward": feed_forward, "vocabulary": vocabulary(row, tensor),
        "sequence": int(row["seq-length"] or row["encoder-seq-length"]),
        "gated": "true" if gated else "false", "activation": "silu" if gated else "gelu",
        "norm": "rms" if row["normalization"] == "RMSNorm" else "layer",
        "positions": "rotary" if row["position-embedding-type"] == "rope" else "learned",
        "tied_embedding":
            "false" if is_on(row, "untie-embeddings-and-output-weights") else "true",
        "bias": bias}
    if row["decoder-num-layers"]:
        model |= {"decoder_layers": int(row["decoder-num-layers"]),
                  "decoder_sequence": int(row["decoder-seq-length"])}
    if model["positions"] == "learned":
        model["position_table"] = int(row["max-position-embeddings"])
    if row["suite"] == "bert":
        model |= {"causal": "false", "token_types": 2, "pooler": "true", "head_bias": "true"}
    if row["num-experts"]:
        model |= {"experts": int(row["num-experts"]),
                  "experts_per_token": int(row["moe-router-topk"]),
                  "expert_feed_forward": int(row["moe-ffn-hidden-size"] or feed_forward)}
        if row["moe-shared-expert-intermediate-size"]:
            model["shared_feed_forward"] = int(row["moe-shared-expert-intermediate-size"])
    return model


def refuse(row):
    """What no workload or plan expresses, and what the table leaves open."""
    for unusual in UNUSUAL:
        if row[unusual]:
            raise LeftOut(unusual)
    if row["mode"] != "pretraining" or row["suite"] not in ("gpt", "bert", "t5", "moe"):
        raise LeftOut(f"suite {row['suite']}, {row['mode']}")
    if row["optimizer"] not in ("", "adam"):
        raise LeftOut(f"optimizer {row['optimizer']}")
    if not row["attention-backend"] and row["transformer-impl"] != "local":
        raise LeftOut("the attention kernel is not stated")


def job_of(row):
    refuse(row)
    tensor = degree(row, "tensor-model-parallel-size")
    flash = row["attention-backend"] in ("flash", "fused") and row["transformer-impl"] != "local"
    dropout = "false" if row["attention-dropout"] == row["hidden-dropout"] == "0.0" else "true"
    job = Job(f"{row['case']} {row['gpu']} {row['branch']} {row['test_type']}",
              shape(row, tensor),
              {"attention": "flash" if flash else "unfused", "dropout": dropout, "loss": "mpt",
               "fused_accumulation":
                   "false" if is_on(row, "no-gradient-accumulation-fusion") else "true",
               "elementwise": "eager"}, DEVICES[row["gpu"]])
    gpus, per_node = int(row["gpus"]), int(row["gpus_per_node"])
    job.on(gpus, per_node)
    job.node_gbit = 400 * per_node
    job.training = {"global_batch": count(row["global-batch-size"]),
                    "microbatch": count(row["micro-batch-size"]),
                    "dtype": "fp16" if is_on(row, "fp16") else "bf16"}
    pipeline, context = (degree(row, "pipeline-model-parallel-size"),
                         degree(row, "context-parallel-size"))
    job.plan = {"tensor": tensor, "pipeline": pipeline, "context": context,
                "data": gpus // (tensor * pipeline * context),
                "zero": 1 if is_on(row, "use-distributed-optimizer") else 0,
                "sequence_parallel": "true" if is_on(row, "sequence-parallel") and tensor > 1
                                     else "false"}
    if row["num-experts"]:
        job.plan["expert"] = degree(row, "expert-model-parallel-size")
        if row["expert-tensor-parallel-size"] == "1":
            job.plan["expert_tensor"] = 1
    chunks = int(row["num-virtual-stages-per-pipeline-rank"] or 1)
    if row["num-layers-per-virtual-pipeline-stage"]:
        chunks = job.model["layers"] // (pipeline *
                                         int(row["num-layers-per-virtual-pipeline-stage"]))
    job.interleave(chunks)
    job.measured["peak_gib"] = repr(int(row["mem_max_max"]) / 2**30)
    return job


def convert(data, into):
    left_out = []
    for path in sorted(Path(data).rglob("*.csv")):
        if not set(COLUMNS) <= set(columns_of(path)):
            continue
        peaks = []
        for row in rows_of(path):
            try:
                job = job_of(row)
            except LeftOut as why:
                left_out.append(f"{row['case']}: {why}")
                continue
            # Workspaces were fitted to these rows.
            peaks += job.rows({"case": f"megatron-golden, {row['suite']}", "use": "fitted",
                               "counted": "allocated", "stage": "last"}, "peak_gib")
        if peaks:
            write(Path(into) / "memory" / "megatron-golden.csv", peaks)
        (Path(into) / "studies").mkdir(parents=True, exist_ok=True)
        (Path(into) / "studies" / "golden_left_out.txt").write_text("\n".join(left_out) + "\n")
