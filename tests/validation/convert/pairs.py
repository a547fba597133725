"""Gavel's pairs of jobs on one GPU as a file of kind pairs: a pair and its mirror are one, and both
jobs of a pair have a row."""

from pathlib import Path

from convert.schema import rows_of, write

DEVICES = {"k80": "k80", "v100": "v100_sxm2_16"}  # those that the program ships a law of


def on_one_gpu(row):
    return (row["file"] == "simulation" and row["gpus_on_one_server"] == "yes" and
            row["num_gpus"] == "1")


def convert(data, into):
    folder = Path(data) / "gavel-throughputs"
    if not (folder / "colocated.csv").exists():
        return
    alone = {(row["gpu"], row["job"], row["batch_size_per_gpu"]): float(row["steps_per_s"] or 0)
             for row in rows_of(folder / "isolated.csv") if on_one_gpu(row)}
    seen, rows = set(), []
    for row in rows_of(folder / "colocated.csv"):
        if not on_one_gpu(row) or row["other_num_gpus"] != "1" or row["gpu"] not in DEVICES:
            continue
        jobs = ((row["job"], row["batch_size_per_gpu"], float(row["steps_per_s"] or 0)),
                (row["other_job"], row["other_batch"], float(row["other_steps_per_s"] or 0)))
        pair = row["gpu"], *sorted(job[:2] for job in jobs)
        if pair in seen:
            continue
        seen.add(pair)
        rates = [alone.get((row["gpu"], job, batch), 0) for job, batch, _ in jobs]
        if min(*rates, jobs[0][2], jobs[1][2]) <= 0:  # did not fit, or has no rate alone
            continue
        for one, other in ((0, 1), (1, 0)):
            rows.append({"case": row["gpu"], "use": "fitted", "device": DEVICES[row["gpu"]],
                         "name": f"{jobs[one][0]} {jobs[one][1]} with {jobs[other][0]} "
                                 f"{jobs[other][1]}",
                         "job": jobs[one][0], "batch": jobs[one][1] or 1,
                         "step_s": repr(1 / rates[one]),
                         "other_job": jobs[other][0], "other_batch": jobs[other][1] or 1,
                         "other_step_s": repr(1 / rates[other]),
                         "share": repr(jobs[one][2] / rates[one])})
    write(Path(into) / "pairs" / "gavel.csv", rows)
