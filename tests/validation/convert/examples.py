"""Published rates of NVIDIA's Deep Learning Examples, ResNet-50 and BERT, as measured jobs: by NVIDIA,
by DLPerf and by Lambda's benchmark."""

from pathlib import Path

from convert.schema import number, rows_of, write

NVIDIA = {"A100-80GB": "a100_sxm4_80", "V100-16GB": "v100_sxm2_16"}
FORMATS = {"TF32": "tf32", "FP32": "fp32", "AMP": "fp16"}
# GPUs that were measured alone.
LAMBDA = {"Quadro RTX 8000": "quadro_rtx8000", "LambdaCloud A10": "a10",
          "A100 80GB SXM4": "a100_sxm4_80", "RTX A6000": "rtx_a6000",
          "H100 80GB PCIe Gen5": "h100_pcie_80", "SMC H100 80GB SXM5": "h100_sxm5_80"}
# As the examples compute it: norms by Apex, bias and GELU fused, attention in separate kernels. Their
# messages of 250 million gradients (run_pretraining.py) hold the whole model, so that nothing of the
# sum overlaps backward.
BERT = {"workload.attention": "unfused", "workload.elementwise": "eager", "workload.dropout": "true"}


def job(source, model, device, dtype, batch, rate, devices=1, nodes=1):
    """`batch`: per GPU; `rate`: samples per second of all."""
    name = f"{device} x{devices} {dtype} {model} batch {batch}"
    case = f"{source}-{model.split('_')[0]}" + ("/fp16" if dtype == "fp16" else "")
    row = {"case": case, "use": "source_left_out", "name": name,
           "group": name,  # formats and batches are no plans to choose among
           "workload.model": model, "training.global_batch": batch * devices,
           "training.microbatch": batch, "training.dtype": dtype, "plan.data": devices,
           "cluster.device": device, "cluster.devices_per_node": devices // nodes,
           "cluster.nodes": nodes, "step_s": number(batch * devices / float(rate))}
    if model == "resnet50":
        row["training.optimizer"] = "sgd"
    else:
        row |= BERT
        if devices > 1:
            row["plan.overlap_gradients"] = "false"
    return row


def nvidia(row):
    """Batches and the layout are those of the recipes of release 21.03 (configs.yml): channels last
    in half precision alone."""
    device, dtype = NVIDIA[row["gpu"].split(" ")[0]], FORMATS[row["precision"]]
    made = job("dle", "resnet50", device, dtype, 112 if dtype == "fp32" else 256,
               row["images_per_s"], int(row["num_gpus"]))
    if dtype == "fp16":
        made["workload.channels_last"] = "true"
    return [made]


def dlperf(row):
    """Of the frameworks, PyTorch. Its scripts keep channels first; BERT's sequences are 128."""
    if row["framework"].split(" bsz")[0] != "NGC PyTorch":
        return []
    half = row["precision_and_batch"].startswith("AMP")
    model = "resnet50" if row["benchmark"].startswith("ResNet") else "bert_base"
    batch = row["framework"].partition("bsz=")[2] or row["precision_and_batch"].split("= ")[1]
    made = job("dlperf", model, "v100_sxm2_16", "fp16" if half else "fp32", int(batch),
               row["samples_per_s"], int(row["gpus"]), int(row["nodes"]))
    if model != "resnet50":
        made["workload.sequence"] = 128
    if made["cluster.nodes"] > 1:
        made["cluster.inter_node.rate"] = "12.5 GB/s"
    return [made]


def lambda_labs(precision, batches):
    """The benchmark's scripts keep channels first; BERT answers questions of 384 tokens."""
    def read(row):
        device = LAMBDA.get(row["system"])
        if not device:
            return []
        has_tf32 = device != "quadro_rtx8000"
        dtype = "fp16" if precision == "fp16" else "tf32" if has_tf32 else "fp32"
        rows = []
        for column, model in (("resnet50", "resnet50"), ("bert_base_squad", "bert_base"),
                              ("bert_large_squad", "bert_large")):
            made = job("lambda", model, device, dtype, int(float(batches[row["system"]][column])),
                       row[column])
            if model != "resnet50":
                made["workload.sequence"] = 384
            rows.append(made)
        return rows
    return read


def convert(data, into):
    sources = {}

    def add(source, path, read):
        if path.exists():
            sources.setdefault(source, []).extend(made for row in rows_of(path)
                                                  for made in read(row))

    data = Path(data)
    add("dle-resnet50", data / "nvidia-dle-resnet50" / "resnet50_train_throughput.csv", nvidia)
    add("dlperf-examples", data / "dlperf-v100" / "report_v1_framework_scaling.csv", dlperf)
    for precision in ("fp16", "fp32"):
        folder = data / "lambda-gpu-benchmark"
        batches = folder / f"pytorch-train-bs-{precision}.csv"
        if batches.exists():
            add("lambda-examples", folder / f"pytorch-train-throughput-{precision}.csv",
                lambda_labs(precision, {row["system"]: row for row in rows_of(batches)}))
    for source, jobs in sources.items():
        write(Path(into) / "jobs" / f"{source}.csv", jobs)
