"""Published tables of training jobs as files of kind jobs and memory: columns with a dot are keys
of job files (docs/formats/job.md). A table is known by its columns. Comments name assumptions that a
table does not state."""

import math
import re
from pathlib import Path

from convert import shapes
from convert.schema import columns_of, number, rows_of, write

# Share of the peak that attention kernels of a generation get: FlashAttention-2 on Hopper (Shah et
# al., FlashAttention-3, 2024); FlashAttention-3 and cuDNN, in a recorded step of DeepSeek-V3.
FLASH_2_ON_HOPPER, CUDNN = 0.35, 0.50
# That of MPT's Triton kernels, which were made for A100: 0.35 there (fitted); on H100 as much time
# per multiprocessor and clock, which is a smaller share of a higher peak.
TRITON = {"a100_sxm4_40": 0.35, "a100_sxm4_80": 0.35,
          "h100_sxm5_80": 0.35 * (132 * 1.98e9 / (108 * 1.41e9)) * (312e12 / 989.4e12)}
PYTORCH_MEMORY_SHARE = 0.52  # of kernels of PyTorch as they are

# How frameworks compute a layer.
MEGATRON_2021 = {"attention": "unfused", "dropout": "true", "loss": "mpt",
                 "fused_accumulation": "false", "elementwise": "eager"}
# Until the end of 2021 Megatron-LM, and what was made of it (DeepSpeed's and EleutherAI's), sums the
# gradients of inputs over tensor ranks before it computes those of weights (mpu/layers.py).
SUMS_IN_LINE = {"overlap_tensor": "false"}
MEGATRON_2022 = MEGATRON_2021 | {"fused_accumulation": "true"}
MEGATRON_FLASH = {"attention": "flash", "loss": "fused", "fused_accumulation": "true",
                  "elementwise": "compiled", "expanded_keys": "false"}
TORCHTITAN = {"attention": "flash", "loss": "eager", "fused_accumulation": "false",
              "elementwise": "eager", "fused_projections": "false"}
TORCHTITAN_COMPILED = TORCHTITAN | {"loss": "compiled", "elementwise": "compiled"}
LLM_FOUNDRY = {"attention": "flash", "loss": "mpt", "fused_accumulation": "false",
               "elementwise": "eager"}
NANOTRON = {"attention": "flash", "loss": "eager", "fused_accumulation": "false",
            "elementwise": "eager"}


class LeftOut(Exception):
    """A row that this program has no words for, and why."""


class Job:
    """A row in the making."""

    def __init__(self, name, model, how, device):
        if model is None:
            raise LeftOut(f"{name}: a model of unknown shape")
        if device is None:
            raise LeftOut(f"{name}: a GPU that the catalog lacks")
        self.name, self.model, self.how, self.device = name, dict(model), dict(how), device
        self.training = {"dtype": "bf16", "microbatch": 1}
        self.plan, self.sustained, self.measured = {}, {}, {}
        self.devices_per_node, self.nodes, self.node_gbit = 8, 1, 0
        self.network, self.network_latency = None, "5 us"  # the kind, where the source states it
        self.regime = None  # rows of one table that different things limit
        self.period = None  # date, release or framework, within which steps compare
        self.choices = None  # (microbatch, interleave) that the table leaves open
        self.peak = {}  # what a peak of memory counts, where it is not the default
        self.stages = None  # numbers of layers, where the framework cuts them by a rule of its own

    def on(self, devices, per_node):
        """So many devices in whole nodes."""
        self.devices_per_node = min(devices, per_node)
        self.nodes = devices // self.devices_per_node if devices else 0
        if self.devices != devices or not devices:
            raise LeftOut(f"{self.name}: no whole nodes")

    @property
    def devices(self):
        return self.devices_per_node * self.nodes

    def tokens_rate(self, rate):
        """Tokens per second and device."""
        tokens = self.training["global_batch"] * self.model["sequence"]
        self.measured["step_s"] = repr(tokens / (rate * self.devices))

    def interleave(self, chunks):
        self.plan["interleave"] = chunks
        self.plan["schedule"] = "interleaved" if chunks > 1 else "1f1b"

    def group(self):
        """Plans of one model on equal devices; a user would choose one of them."""
        model = " ".join(str(self.model[key]) for key in ("hidden", "layers", "heads", "sequence"))
        text = f"{self.period or ''} {self.device} x{self.devices}, {model}"
        return (text + (", fp8" if self.training["dtype"] == "fp8" else "")).strip()

    def cluster(self):
        cluster = {"device": self.device, "devices_per_node": self.devices_per_node,
                   "nodes": self.nodes, "intra_node": "nvlink"}
        if self.nodes > 1:
            # Tables give the rate of a node. NICs of nodes with such GPUs carry 100 Gbit/s or more.
            nics = min(max(math.floor(self.node_gbit / 99), 1), self.devices_per_node)
            cluster |= {"inter_node.links": nics,
                        "inter_node.rate": f"{number(self.node_gbit / nics)} Gbit/s",
                        "inter_node.latency": self.network_latency}
            if self.network:
                cluster["inter_node.network"] = self.network
        return cluster

    def rows(self, common, measured):
        """One row, or one for each choice that the table leaves open."""
        model = dict(self.model)
        bias = model.pop("bias")
        model |= {"query_bias": bias, "output_bias": bias, "linear_bias": bias}
        for microbatch, chunks in self.choices or [(self.training["microbatch"],
                                                    self.plan.get("interleave", 1))]:
            self.training["microbatch"] = microbatch
            self.interleave(chunks)
            row = common | {"name": self.name, "group": self.group()}
            if self.choices:
                row["choice"] = f"microbatch {number(microbatch)}, {chunks} chunks"
            row["workload.kind"] = "transformer"
            for section, values in (("workload", model | self.how), ("training", self.training),
                                    ("plan", self.plan), ("cluster", self.cluster()),
                                    ("sustained", self.sustained)):
                row |= {f"{section}.{key}": value if isinstance(value, str) else number(value)
                        for key, value in values.items()}
            yield row | {measured: self.measured[measured]}


    def rows_of_peak(self, common):
        """Its measured peak, with the stages that the framework makes."""
        if self.stages:
            plan = {key: value for key, value in self.plan.items()
                    if key not in ("data", "tensor", "pipeline", "split")}
            stage = "data: {data}, tensor: {tensor}".format(**self.plan)
            plan["stages"] = "[" + ", ".join(f"{{layers: {layers}, {stage}}}"
                                             for layers in self.stages) + "]"
            self.plan = plan
        return self.rows(common | self.peak, "peak_gib")


def count(text):
    return int(float(text))


# --- vTrain (Bang et al.): Megatron-DeepSpeed on A100. Assumed: FP16, vocabulary 51200, 80 GB, and
# that everything is recomputed.

def vtrain(row):
    job = Job("", shapes.gpt(count(row["hidden"]), count(row["layers"]), count(row["heads"]),
                             count(row["seq_len"])), MEGATRON_2021, "a100_sxm4_80")
    job.node_gbit = 800
    job.training = {"global_batch": float(row["global_batch"]),
                    "microbatch": float(row["micro_batch"]), "dtype": "fp16", "recompute": "full"}
    job.plan = {"tensor": count(row["tp"]), "data": count(row["dp"]),
                "pipeline": count(row["pp"]), "overlap_gradients": "false"}
    job.name = (f"h{job.model['hidden']} l{job.model['layers']} tp{job.plan['tensor']} "
                f"dp{job.plan['data']} pp{job.plan['pipeline']} mb{number(row['micro_batch'])} "
                f"gb{number(row['global_batch'])}")
    job.on(count(row["num_gpus"]), 8)
    job.measured["step_s"] = repr(float(row["iteration_ms"]) * 1e-3)
    return job


# --- Narayanan et al., SC21 (arXiv:2104.04473), tables 1 and 2, and Korthikanti et al.
# (arXiv:2205.05198): DGX A100 with eight HDR ports.

def on_selene(job):
    job.node_gbit = 1600
    job.training["dtype"] = "fp16"
    job.plan["overlap_gradients"] = "false"


def step_of(job, tflops_per_gpu):
    """From the paper's FLOP count (equation 3), which holds recomputation."""
    s, h, l = (float(job.model[key]) for key in ("sequence", "hidden", "layers"))
    flops = (96 * job.training["global_batch"] * s * l * h * h *
             (1 + s / (6 * h) + job.model["vocabulary"] / (16 * l * h)))
    return repr(flops / (tflops_per_gpu * 1e12 * job.devices))


def divided(total, by):
    return int(total / by) if by > 0 and total >= by and total % by == 0 else None


def open_choices(job, microbatch):
    """Legal microbatches and chunks, for tables that do not state them."""
    pipeline = job.plan["pipeline"]
    sizes = [job.training["microbatch"]]
    if microbatch:
        sizes = [1, 2, 4] if pipeline > 1 else [4, 8, 2, 1]
    choices = []
    for size in sizes:
        batches = divided(job.training["global_batch"], size * job.plan["data"])
        if batches is None:
            continue
        choices += [(size, chunks) for chunks in range(1, 9)
                    if (chunks == 1 or (pipeline > 1 and batches % pipeline == 0)) and
                    divided(job.model["layers"], pipeline * chunks)]
    if not choices:
        raise LeftOut(f"{job.name}: no microbatch divides the batch")
    job.choices = choices


def sc21_scaling(row):
    job = Job(f"{number(row['params_billion'])}B",
              shapes.gpt(count(row["hidden"]), count(row["layers"]), count(row["heads"]), 2048),
              MEGATRON_2021, "a100_sxm4_80")
    on_selene(job)
    job.training |= {"global_batch": float(row["global_batch"]), "recompute": "full"}
    job.plan |= SUMS_IN_LINE | {"tensor": count(row["tp"]), "pipeline": count(row["pp"])}
    devices = count(row["num_gpus"])
    data = divided(devices, job.plan["tensor"] * job.plan["pipeline"])
    if data is None:
        raise LeftOut(f"{job.name}: tensor and pipeline degree do not divide the GPUs")
    job.on(devices, 8)
    job.plan["data"] = data
    open_choices(job, True)
    job.measured["step_s"] = step_of(job, float(row["tflops_per_gpu"]))
    return job


# SC21 table 1, and GPT-3: billions of parameters to hidden, layers, heads.
PUBLISHED = {1.7: (2304, 24, 24), 3.6: (3072, 30, 32), 7.5: (4096, 36, 32), 18.4: (6144, 40, 48),
             39.1: (8192, 48, 64), 76.1: (10240, 60, 80), 145.6: (12288, 80, 96),
             174.6: (12288, 96, 96), 310.1: (16384, 96, 128), 529.6: (20480, 105, 128),
             1008.0: (25600, 128, 160)}


def sc21_schemes(row):
    billions, scheme = float(row["params_billion"]), row["scheme"]
    devices = count(row["num_gpus"])
    shape = next((s for b, s in PUBLISHED.items() if abs(b / billions - 1) < 5e-3), None)
    job = Job(f"{scheme} {number(billions)}B {devices} GPUs",
              shape and shapes.gpt(*shape, sequence=2048), MEGATRON_2021, "a100_sxm4_80")
    on_selene(job)
    job.training |= {"global_batch": float(row["global_batch"]),
                     "microbatch": float(row["micro_batch"]), "recompute": "full"}
    model_parallel = count(row["model_parallel_size_as_transcribed"])
    if scheme == "ZeRO-3":
        job.plan |= {"zero": 3, "gather_weights": "by_tensor", "tensor": 1, "pipeline": 1}
        model_parallel = 1
    else:  # tensor parallelism fills a node
        job.plan |= SUMS_IN_LINE
        job.plan["tensor"] = min(8, max(1, model_parallel))
        job.plan["pipeline"] = max(1, model_parallel // job.plan["tensor"])
    data = divided(devices, max(1, model_parallel))
    if data is None:
        raise LeftOut(f"{job.name}: model parallelism does not divide the GPUs")
    job.on(devices, 8)
    job.plan["data"] = data
    open_choices(job, False)
    job.measured["step_s"] = step_of(job, float(row["tflops_per_gpu"]))
    return job


def seqsel(row):
    model = shapes.gpt(count(row["hidden"]), count(row["num_blocks"]), count(row["attn_heads"]),
                       count(row["seq_size"])) | {"feed_forward": count(row["feedforward"]),
                                                  "head_size": count(row["attn_size"])}
    job = Job(f"{row['model']} {row['mode']}", model, MEGATRON_2022, "a100_sxm4_80")
    on_selene(job)
    recompute = {"none": "none", "attn_only": "selective", "full": "full"}
    job.training |= {"global_batch": float(row["batch_size"]),
                     "microbatch": float(row["microbatch_size"]),
                     "recompute": recompute[row["activation_recompute"]], "gradients": "fp32"}
    job.plan |= {"sequence_parallel": "true" if row["tensor_par_comm_type"] == "rs_ag" else "false",
                 "zero": 1 if row.get("optimizer_sharding") == "True" else 0,
                 "tensor": count(row["tensor_par"]), "pipeline": count(row["pipeline_par"]),
                 "data": count(row["data_par"])}
    job.interleave(count(row["pipeline_interleaving"]))
    job.on(count(row["num_procs"]), 8)
    for column, measured, unit in (("iteration_s", "step_s", 1),
                                   ("param_grad_opt_gib", "states_gib", 1),
                                   ("activation_gib", "activations_gib", 1),
                                   ("activation_pct_of_none", "activation_share", 0.01)):
        if column in row:
            job.measured[measured] = repr(float(row[column]) * unit if unit != 1
                                          else float(row[column]))
    return job


# --- Fully sharded parameters: llm-foundry's MPT, and torchtitan's Llama 3.

DEVICES = {"a100_40gb": "a100_sxm4_40", "a100_80gb": "a100_sxm4_80", "h100_80gb": "h100_sxm5_80",
           "H100-96GB-500W": "h100_sxm5_96_500w", "H100-80GB": "h100_sxm5_80",
           "H200": "h200_sxm_141", "A100-80GB": "a100_sxm4_80", "B200": "b200_sxm_180"}


def with_sequence(model, tokens):
    return None if model is None else model | {"sequence": count(tokens)}


def mpt(row):
    devices = count(row["gpus"])
    device = DEVICES.get(row["gpu"])
    job = Job(f"{row['gpu']} {row['model']} seq{row['seqlen_t']} x{devices} "
              f"mb{number(row['microbatchsize'])} {row['precision']}",
              with_sequence(shapes.mpt(row["model"]), row["seqlen_t"]), LLM_FOUNDRY, device)
    job.on(devices, 8)
    rate = re.search(r"(\d+) Gbps", row["section"])
    job.node_gbit = float(rate.group(1)) if rate else 3200  # assumed where it is not given
    job.training = {
        "global_batch": float(row["globalbatchsize"]), "microbatch": float(row["microbatchsize"]),
        "recompute": "full" if row["activation_checkpointing"] == "True" else "none",
        "dtype": "fp8" if row["precision"] == "amp_fp8" else "bf16",
        # PURE reduces gradients in half precision, DEFAULT in FP32.
        "gradients": "bf16" if row["mp_mode"] == "PURE" else "fp32"}
    job.plan = {"data": devices, "zero": 3 if row["sharding_strategy"] == "FULL_SHARD" else 2}
    job.sustained = {"memory": PYTORCH_MEMORY_SHARE, "attention": TRITON[device]}
    job.tokens_rate(float(row["throughput_t_s_gpu"]))
    return job


def torchtitan(row):
    devices, kept, precision = count(row["num_gpus"]), row["activation_ckpt"], row["precision"]
    compiled = row["torch_compile"] == "yes"
    job = Job(f"{row['model']} {row['parallelism']} {row['seq_len']} {precision} {kept}"
              f"{'' if compiled else ' eager'}",
              with_sequence(shapes.named(row["model"]), row["seq_len"]),
              TORCHTITAN_COMPILED if compiled else TORCHTITAN, DEVICES.get(row["gpu"]))
    job.on(devices, 8)
    job.node_gbit = 3200
    job.sustained = {"attention": FLASH_2_ON_HOPPER}
    if not compiled:
        job.sustained["memory"] = PYTORCH_MEMORY_SHARE
    degrees = {"fsdp": 1, "tp": 1, "pp": 1, "cp": 1}
    job.plan["zero"] = 3
    for word in row["parallelism"].split():
        degree = re.fullmatch(r"(fsdp|tp|pp|cp)(\d+)", word)
        if degree:
            degrees[degree.group(1)] = int(degree.group(2))
        elif word == "asynctp":
            job.plan["asynchronous_tensor"] = "true"
        elif word != "1f1b":
            raise LeftOut(f"{job.name}: '{word}'")
    tensor, pipeline, context = degrees["tp"], degrees["pp"], degrees["cp"]
    job.plan |= {"data": degrees["fsdp"], "tensor": tensor, "pipeline": pipeline,
                 "context": context, "sequence_parallel": "true" if tensor > 1 else "false"}
    if math.prod(degrees.values()) != devices:
        raise LeftOut(f"{job.name}: the degrees do not make up the GPUs")
    # A data-parallel rank's batch is one microbatch, or one per stage of the pipeline.
    local = float(row["local_batch"])
    job.training = {"microbatch": local / pipeline,
                    "global_batch": float(row["global_batch"] or local * degrees["fsdp"]),
                    "dtype": "bf16" if precision == "bf16" else "fp8", "gradients": "fp32",
                    # "config default" is taken for selective.
                    "recompute": "full" if kept == "full" else "selective"}
    if precision == "float8_rowwise":  # each row has a scale of its own, which gains nothing
        job.sustained["fp8"] = 1
        job.plan["quantised_gathers"] = "false"
    if context > 1:  # assumed: a ring in which the last rank has most of attention
        job.plan["context_balanced"] = "false"
    job.how["saved"] = "products_and_sums" if tensor > 1 else "products"
    if tensor > 1:
        job.how["logit_bytes"] = 22
    elif compiled and row["gpu"] != "H200":  # before torchtitan compiled its loss
        job.how["logit_bytes"] = 14
    if row["tokens_per_s_per_gpu"]:
        job.tokens_rate(float(row["tokens_per_s_per_gpu"]))
    if row["peak_mem_gib"]:
        job.measured["peak_gib"] = repr(float(row["peak_mem_gib"]))
    job.open = kept == "config default" or context > 1
    return job


# --- NVIDIA's own numbers: NeMo and Megatron-Bridge releases, MLPerf Training; and DLPerf's of
# Megatron-LM and OneFlow on V100.

# Device, GPUs that share one NVLink domain, Gbit/s of network per GPU.
SYSTEMS = {"DGX-H100": ("h100_sxm5_80", 8, 400), "DGX-H200": ("h200_sxm_141", 8, 400),
           "DGX-B200": ("b200_sxm_180", 8, 400), "DGX-B300": ("b300", 8, 800),
           "DGX-GB200": ("gb200_186", 64, 400)}


def dtype_of(precision):
    # Of two ("FP8-CS (FP8-MX)") the first number is the first precision's.
    if precision.startswith(("FP8", "MXFP8")):
        return "fp8"
    return {"BF16": "bf16", "FP16": "fp16"}.get(precision)


def degree_of(cell):
    """1 where it does not apply. Two may be in a cell: "64 (0)"."""
    if cell in ("", "n/a"):
        return 1
    if not cell.isdigit():
        raise LeftOut("two layouts in one row")
    return int(cell)


def follow_recipe(job, release, model, system, precision):
    """Settings that no column states: as the recipes of Megatron-Bridge have them
    (scripts/performance/configs),
    and its release notes (0.5.1: fused products of experts came with container 26.06; in 26.06.01
    those of GPT-OSS did not work)."""
    gpt_oss, h100, gb200 = model.startswith("GPT OSS"), system == "DGX-H100", system == "DGX-GB200"
    fused = release >= "26.06" and not (release.startswith("26.06.01") and gpt_oss)
    job.sustained["attention"] = CUDNN
    job.how["fused_experts"] = "true" if fused else "false"
    if (model.startswith("Qwen3_30B") or (model.startswith("Qwen3_235B") and gb200) or
            (gpt_oss and not h100)):
        job.plan["expert_exchange"] = "tokens_once"
    if (gb200 and (gpt_oss or fused)) or (h100 and model.startswith("Qwen3_235B")):
        job.plan["overlap_experts"] = "true"
    # Their recipes capture no CUDA graph, so that the host launches kernel by kernel. Those of the
    # others capture attention and routing, as the default of compiled layers does.
    if ((model.startswith("Qwen3_30B") and h100 and precision == "FP8") or
            (model.startswith("Qwen3_235B") and not gb200) or (gpt_oss and (h100 or gb200))):
        job.sustained["implementation"] = "megatron_lm"
    if gpt_oss and (h100 or gb200):
        job.how["recompute_ops"] = ("[attention_norm, feed_forward_norm, expert_clamp, "
                                    "expert_activation]")


def nemo(row):
    devices, model, release = count(row["gpus"]), row["model"], row["release"]
    system = row["system"]
    name = f"{release.split(' ')[0]} {model} {row['precision']} {system} x{devices}"
    if "LoRA" in row["task"]:
        raise LeftOut(f"{name}: trains adapters alone")
    if "SFT" in row["task"]:
        name += " SFT"
    shape = shapes.named(model.split(" (")[0])
    if shape is None:
        raise LeftOut(f"{name}: a model that no workload expresses")
    if model.split(" (")[0] != model:
        raise LeftOut(f"{name}: a variant that drops tokens")
    if system not in SYSTEMS:
        raise LeftOut(f"{name}: a GPU that the catalog lacks")
    device, per_node, gbit = SYSTEMS[system]
    job = Job(name, shape | {"sequence": count(row["seq_len"])}, MEGATRON_FLASH, device)
    job.on(devices, per_node)
    job.node_gbit = gbit * job.devices_per_node
    dtype = dtype_of(row["precision"])
    if dtype is None:
        raise LeftOut(f"{name}: " + ("its number format" if row["precision"]
                                     else "its precision is not stated"))
    try:
        tensor, pipeline, context, chunks, expert, fsdp = (
            degree_of(row[column]) for column in ("tp", "pp", "cp", "vp", "ep", "fsdp"))
    except LeftOut as why:
        raise LeftOut(f"{name}: {why}") from None
    job.plan = {"tensor": tensor, "pipeline": pipeline, "context": context, "expert": expert}
    if pipeline > 1 and chunks > 1:
        job.interleave(chunks)
    data = divided(devices, tensor * pipeline * context)
    if data is None:
        raise LeftOut(f"{name}: the degrees do not divide the GPUs")
    job.plan["data"] = data
    follow_recipe(job, release, model, system, row["precision"])
    job.period = release.split(" ")[0]
    # More experts' ranks than data ranks: then tensor ranks hold whole ones.
    if data % expert != 0 and tensor > 1:
        job.plan["expert_tensor"] = 1
    # Assumed: distributed optimizer, overlapped collectives, no recomputation.
    job.plan |= {"zero": 3 if fsdp > 1 else 1,
                 "sequence_parallel": "true" if tensor > 1 else "false",
                 "asynchronous_tensor": "true" if tensor > 1 else "false"}
    job.training = {"global_batch": float(row["gbs"]), "microbatch": float(row["mbs"]),
                    "dtype": dtype, "recompute": "none"}
    job.tokens_rate(float(row["tokens_per_s_per_gpu"].split(" (")[0]))
    return job


def mlperf(row):
    devices = count(row["num_gpus"])
    name = f"{row['system']} {row['precision']} x{devices}"
    if "175B" not in row["model"]:
        raise LeftOut(f"{name}: a model of unknown shape")
    dtype = dtype_of(row["precision"])
    if dtype is None:
        raise LeftOut(f"{name}: its number format")
    job = Job(name, shapes.gpt(12288, 96, 96, count(row["seq_len"])), MEGATRON_FLASH,
              "h100_sxm5_80")
    job.sustained["attention"] = FLASH_2_ON_HOPPER  # of June 2023
    job.node_gbit = 3200
    job.on(devices, 8)
    job.training = {"global_batch": float(row["global_batch"]),
                    "microbatch": float(row["micro_batch"]), "dtype": dtype}
    # Assumed: 6 chunks a stage, distributed optimizer, overlapped tensor parallelism.
    job.plan = {"tensor": count(row["tp"]), "pipeline": count(row["pp"]),
                "data": count(row["dp"]), "zero": 1, "sequence_parallel": "true",
                "asynchronous_tensor": "true"}
    job.interleave(6)
    job.measured["step_s"] = repr(float(row["late_step_time_s"]))
    return job


def dlperf(row, framework):
    rate = row[f"{framework}_seq_per_s"]
    if not rate or float(rate) == 0:
        raise LeftOut(f"{row['case']} {framework}: not measured")
    job = Job(f"{row['case']} {framework}",
              shapes.gpt(count(row["hidden"]), count(row["layers"]), count(row["heads"]), 2048),
              MEGATRON_2021, "v100_sxm2_16")
    job.devices_per_node, job.nodes = count(row["gpus_per_node"]), count(row["nodes"])
    job.period = framework
    job.node_gbit = 100
    # Assumed: full recomputation, without which the larger rows do not fit 16 GB.
    job.training = {"global_batch": float(row["global_batch"]),
                    "microbatch": float(row["micro_batch"]), "dtype": "fp16",
                    "recompute": "full"}
    job.plan = {"data": count(row["dp"]), "tensor": count(row["tp"]),
                "pipeline": count(row["pp"]), "overlap_gradients": "false"}
    if framework == "megatron":
        job.plan |= SUMS_IN_LINE
    job.measured["step_s"] = repr(job.training["global_batch"] / float(rate))
    return job


# --- Searches of a layout. nanotron's sweep on H100; names and shapes as its benchmark script has
# them. Assumed: nodes with EFA of 3200 Gbit/s (p5.48xlarge), FlashAttention-2, stages of equal
# FLOPs, embedding and head tied without a pipeline.

def where_it_communicates(job):
    """What differs in difficulty: by the plan alone, without a look at the step."""
    tensor, pipeline = job.plan["tensor"], job.plan["pipeline"]
    over_nodes = [word for word, crosses in (("tensor", tensor > job.devices_per_node),
                                             ("pipeline", pipeline > 1 and job.nodes > 1))
                  if crosses]
    if job.nodes > 32:
        return "above 32 nodes"
    if over_nodes:
        return " and ".join(over_nodes) + " over nodes"
    # Kernels of a microbatch of one sequence, divided by four and more ranks, are shorter than
    # what launches them.
    return "host-bound" if job.training["microbatch"] == 1 and tensor >= 4 else "kernel-bound"


def stages_of_nanotron(layers, hidden, feed_forward, vocabulary, pipeline):
    """Layers of each stage, embedding and head counted too. A stage is full when the parameters of
    all layers so far, the head's but not the embedding's, exceed its share of them. Stages that
    would have the loss alone get a layer here. None if there are more stages than layers."""
    costs = [4 * hidden ** 2 + 3 * hidden * feed_forward] * layers + [vocabulary * hidden]
    stages, done = [1], 0
    for cost in costs:
        stages[-1] += 1
        done += cost
        if done > sum(costs) * len(stages) / pipeline and len(stages) < pipeline:
            stages.append(0)
    if pipeline > layers + 2:
        return None
    stages += [0] * (pipeline - len(stages))
    while 0 in stages:
        empty = len(stages) - 1 - stages[::-1].index(0)
        stages[max(k for k in range(empty) if stages[k] > 1)] -= 1
        stages[empty] += 1
    return stages


# Layers, hidden size, heads and feed-forward size by the billions in a file's name, as the script
# names its models; its largest has 80 billion parameters without grouped keys.
NANOTRON_MODELS = {1: (16, 2048, 32, 8192), 3: (28, 3072, 32, 8192), 8: (32, 4096, 32, 14336),
                   70: (80, 8192, 64, 28672), 80: (80, 8192, 64, 28672)}


def nanotron(row):
    nodes, tensor, pipeline = count(row["nodes"]), count(row["tensor"]), count(row["pipeline"])
    named = re.search(r"(\d+)b(_|$)", row["file"])
    if not named or int(named[1]) not in NANOTRON_MODELS:
        raise LeftOut(f"{row['file']}: a model of unknown shape")
    layers, hidden, heads, feed_forward = NANOTRON_MODELS[int(named[1])]
    job = Job(f"n{nodes} dp{row['data']} pp{pipeline} tp{tensor} mb{row['microbatch']} "
              f"z{row['zero']}",
              {"hidden": hidden, "layers": layers, "heads": heads, "kv_heads": heads,
               "head_size": hidden // heads, "feed_forward": feed_forward, "vocabulary": 131072,
               "gated": "true", "activation": "silu", "norm": "rms", "positions": "rotary",
               "sequence": 4096, "bias": "false",
               # Small models are tied, but not over stages.
               "tied_embedding": "true" if pipeline == 1 and feed_forward < 10000 else "false"},
              NANOTRON, "h100_sxm5_80")
    job.training |= {"global_batch": count(row["global_batch"]),
                     "microbatch": count(row["microbatch"]), "gradients": "fp32",
                     "recompute": "none"}
    job.plan = {"data": count(row["data"]), "tensor": tensor, "pipeline": pipeline,
                "zero": count(row["zero"]), "sequence_parallel": "true" if tensor > 1 else "false"}
    if pipeline > 1:
        job.plan["split"] = "flops"
        job.stages = stages_of_nanotron(job.model["layers"], job.model["hidden"],
                                        job.model["feed_forward"], job.model["vocabulary"],
                                        pipeline)
    # Its cross-entropy over a divided vocabulary is that of Megatron-LM, and keeps the logits in FP32
    # too: 2 + 4 + 4 bytes. Gradients pass through DistributedDataParallel into FP32 sums. Blocks of
    # its collectives may wait for the device, and its values are views. Memory is logged by rank 0.
    job.training["accumulation"] = "apart"
    job.how |= {"logit_bytes": 10, "gathered_inputs": "unknown", "values_are_views": "true"}
    job.measured["peak_gib"] = row["memory_gb"]
    job.peak = {"stage": "first"}
    job.sustained = {"attention": FLASH_2_ON_HOPPER, "implementation": "nanotron"}
    job.on(8 * nodes, 8)
    job.node_gbit, job.network, job.network_latency = 3200, "efa", "15 us"
    job.regime = where_it_communicates(job)
    job.tokens_rate(float(row["tokens_per_s_per_gpu"]))
    return job


# BigScience's on A100: Megatron-DeepSpeed of February 2022. Steps compare within four periods,
# between which the machine was improved. Assumed: Omni-Path of 100 Gbit/s a link.
DEEPSPEED_BUCKET = "1 GB"  # the default: 500 million gradients of 16 bits
BIGSCIENCE_PERIODS = (("02-28", "28"), ("02-25", "25-27"), ("02-21", "21-24"), ("02-17", "17-20"))


def bigscience(row):
    tensor, pipeline, data = count(row["tp"]), count(row["pp"]), count(row["dp"])
    name = (f"{row['date']} l{row['layers']} a{row['heads']} tp{tensor} dp{data} pp{pipeline} "
            f"mb{row['mbs']} gb{row['gbs']}")
    if row["status"] != "ok" or not row["seconds"]:
        raise LeftOut(f"{name}: {row['status'] if row['status'] != 'ok' else 'no step time'}")
    if row["duplicate_of"]:
        raise LeftOut(f"{name}: the row of line {row['duplicate_of']} again")
    job = Job(name, shapes.gpt(count(row["hidden"]), count(row["layers"]), count(row["heads"]),
                               count(row["seq"]), count(row["vocab"])) |
              {"positions": "none", "embedding_norm": "true"}, MEGATRON_2021, "a100_sxm4_80")
    job.period = "February " + next(period for first, period in BIGSCIENCE_PERIODS
                                    if row["date"] >= first)
    # "16-bit (not stated)" is taken for half precision.
    job.training |= {"global_batch": count(row["gbs"]), "microbatch": count(row["mbs"]),
                     "dtype": "bf16" if row["dtype"] == "bf16" else "fp16", "recompute": "full",
                     "gradients": "fp32" if row["grad_accumulation"] == "fp32" else "fp16"}
    job.plan = {"data": data, "tensor": tensor, "pipeline": pipeline, "zero": count(row["zero"]),
                "overlap_gradients": "false", "bucket": DEEPSPEED_BUCKET} | SUMS_IN_LINE
    # Where it is not stated: most runs after 24 February had blocking launches.
    if (row["launch_blocking"] or str(row["date"] > "02-24")).lower() in ("true", "yes", "1"):
        job.sustained["launch_blocking"] = "true"
    if "embedding" in row["partition"]:
        job.plan["split"] = "layers"
    if row["dtype"] == "bf16":
        job.training["accumulation"] = "apart"
    if row.get("mem_gb"):
        # Thousands of the MiB that nvidia-smi shows: a reading of 80 exceeds the card's 79.3 GiB.
        job.measured["peak_gib"] = number(float(row["mem_gb"]) * 1000 / 1024)
        job.peak = {"counted": "device"}
    job.on(count(row["gpus"]), 8)
    job.node_gbit, job.network = 400, "omni_path"
    job.measured["step_s"] = row["seconds"]
    return job


# Columns that no other table has together, its name, its reader, and which rows gave constants of
# the program: every so many, of those that `fitted` picks.
TABLES = [
    (("params_billion", "micro_batch", "dp", "iteration_ms"), "vtrain-multi", vtrain, 5),
    (("params_billion", "tflops_per_gpu", "tp", "pp"), "sc21-table1", sc21_scaling, 0),
    (("scheme", "model_parallel_size_as_transcribed"), "sc21-table2", sc21_schemes, 0),
    (("tensor_par_comm_type", "iteration_s"), "seqsel-table5", seqsel, 0),
    (("tensor_par_comm_type", "activation_gib"), "seqsel-fig1", seqsel, 0),
    (("tensor_par_comm_type", "activation_pct_of_none"), "seqsel-fig7", seqsel, 0),
    (("microbatchsize", "sharding_strategy", "throughput_t_s_gpu"), "mpt", mpt, 3),
    (("local_batch", "parallelism", "activation_ckpt"), "torchtitan", torchtitan, 0),
    (("mbs", "gbs", "tokens_per_s_per_gpu"), "nemo", nemo, 2),
    (("late_step_time_s",), "mlperf-gpt3", mlperf, 0),
    (("micro_batch_x_dp", "accum_steps"), "dlperf-gpt", (dlperf, "megatron", "oneflow"), 0),
    (("accumulation", "mfu_percent", "memory_gb"), "nanotron", nanotron, 1),
    (("heads_from", "launch_blocking", "seconds"), "bigscience", bigscience, 0)]


def case_of(table, job):
    """Rows of a table that have the same difficulty: one precision, dense or not, one regime."""
    case = table
    if job.regime:
        case += f"/{job.regime}"
    if job.training["dtype"] == "fp8":
        case += "/fp8"
    if "experts" in job.model:
        case += "/experts"
    # DeepSpeed as it was in 2021, next to Megatron-LM in one table.
    if table == "sc21-table2" and job.plan.get("zero") == 3:
        case += "/zero3"
    return case


def read(path, reader, left_out):
    """Jobs of a table, with names of their own, and why others are left out. A reader makes one job
    of a row, or one for each of several columns."""
    jobs, seen = [], {}
    reader, *columns = reader if isinstance(reader, tuple) else (reader,)
    for row in rows_of(path):
        for column in columns or [()]:
            try:
                job = reader(row | {"file": path.stem}, *([column] if column else []))
            except LeftOut as why:
                left_out.append(str(why))
                continue
            seen[job.name] = seen.get(job.name, 0) + 1
            if seen[job.name] > 1:
                job.name += f" #{seen[job.name]}"
            jobs.append(job)
    return jobs


def convert(data, into):
    left_out = []
    for path in sorted(Path(data).rglob("*.csv")):
        columns = columns_of(path)
        found = next((t for t in TABLES if set(t[0]) <= set(columns)), None)
        if not found:
            continue
        _, table, reader, every = found
        steps, peaks, parts, index = [], [], [], 0
        for job in read(path, reader, left_out):
            if "step_s" in job.measured:
                fitted = every and index % every == 0 and (table != "nemo" or
                                                           "experts" in job.model)
                index += 1
                use = "fitted" if fitted else "row_left_out" if every else "source_left_out"
                steps += job.rows({"case": case_of(table, job), "use": use}, "step_s")
            # Figures of parts of memory, which are no peaks: for a study.
            for part in ("states_gib", "activations_gib", "activation_share"):
                if part in job.measured:
                    parts += job.rows({"case": f"{table}, {part}"}, part)
            if "peak_gib" in job.measured:
                open_ = getattr(job, "open", False)
                case = table + (", recomputation not stated" if open_ else
                                ", pipeline" if job.plan["pipeline"] > 1 else "")
                # Constants and forms of memory were chosen with these in sight.
                fitted = table in ("torchtitan", "nanotron", "bigscience") and not open_
                peaks += job.rows_of_peak({"case": case,
                                           "use": "fitted" if fitted else "source_left_out"})
        if steps:
            write(Path(into) / "jobs" / f"{table}.csv", steps)
        if peaks:
            write(Path(into) / "memory" / f"{table}.csv", peaks)
        if parts:
            write(Path(into) / "studies" / f"{table}.csv", parts)
    if left_out:
        (Path(into) / "studies").mkdir(parents=True, exist_ok=True)
        (Path(into) / "studies" / "jobs_left_out.txt").write_text("\n".join(left_out) + "\n")
