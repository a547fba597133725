"""Published training rates of ResNet-50 on V100 and A100 as measured jobs."""

from pathlib import Path

from convert.schema import number, rows_of, write

DEVICES = {"A100-80GB": "a100_sxm4_80", "V100-16GB": "v100_sxm2_16"}
FORMATS = {"TF32": "tf32", "FP32": "fp32", "AMP": "fp16"}
# Samples per GPU of the recipes, which the table does not state (recalled).
SAMPLES = 256


def convert(data, into):
    path = Path(data) / "nvidia-dle-resnet50" / "resnet50_train_throughput.csv"
    if not path.exists():
        return
    jobs = []
    for row in rows_of(path):
        devices, dtype = int(row["num_gpus"]), FORMATS[row["precision"]]
        device = DEVICES[row["gpu"].split(" ")[0]]
        batch = SAMPLES * devices
        jobs.append({"case": "dle-resnet50" + ("/fp16" if dtype == "fp16" else ""),
                     "use": "source_left_out", "name": f"{device} x{devices} {dtype}",
                     "group": f"{device} x{devices} {dtype}",  # formats are no plans to choose among
                     "workload.model": "resnet50", "training.global_batch": batch,
                     "training.microbatch": SAMPLES, "training.dtype": dtype,
                     "training.optimizer": "sgd", "plan.data": devices, "cluster.device": device,
                     "cluster.devices_per_node": devices, "cluster.nodes": 1,
                     "step_s": number(batch / float(row["images_per_s"]))})
    write(Path(into) / "jobs" / "dle-resnet50.csv", jobs)
