"""Op timelines of jobs with several ranks, as op tables (docs/formats/inputs.md).

Operations of one worker follow each other on one stream. A send and a receive that begin and end
together are one exchange of two neighbouring stages. Steps, which the source times from zero each,
are laid end to end.

The source has no record of what workers wait for between their last exchange and the first sum of gradients.
Workers that leave this wait at the same instant waited for each other: those of the last stage for the sum of their
losses, and, in some steps, all stages of one data rank.
"""

import csv
import gzip
import os
import sys

US = 1e6


def _rows(path):
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file):
            yield {
                "data": int(row["dp_rank"]),
                "stage": int(row["stage"]),
                "rank": int(row["rank"]),
                "step": int(row["step"]),
                "name": row["optype"],
                "start": float(row["start_ts"]),
                "end": float(row["start_ts"]) + float(row["duration"]),
            }


def _group(row):
    """The ranks that an operation waits for, as a name."""
    data, stage, name = row["data"], row["stage"], row["name"]
    if name in ("forward-send", "backward-recv"):
        return f"stages {stage} and {stage + 1} of {data}"
    if name in ("forward-recv", "backward-send"):
        return f"stages {stage - 1} and {stage} of {data}"
    if name == "embedding-grads-all-reduce":
        return f"embedding of {data}"
    if name in ("grads-reduce-scatter", "params-all-gather"):
        return f"data of stage {stage}"
    if name == "optimizer-clip-main-grad":
        return "all"
    return ""


def _merged(rows):
    """Sends and receives that begin together become one exchange with the same neighbour."""
    rows.sort(key=lambda row: (row["rank"], row["step"], row["start"], row["name"]))
    found = []
    for row in rows:
        row["group"] = _group(row)
        if row["name"].endswith(("-send", "-recv")):
            row["name"] = "send_recv"
        last = found[-1] if found else None
        if (
            last
            and row["name"] == "send_recv"
            and all(last[key] == row[key] for key in ("name", "rank", "step", "start", "group"))
        ):
            last["end"] = max(last["end"], row["end"])
        else:
            found.append(row)
    return found


def _with_waits(rows):
    """Adds the waits before the first sum of gradients, which is the sum over layer norms."""
    together = 0.02  # seconds: clocks of different nodes
    last_stage = max(row["stage"] for row in rows)
    first_sums = {}
    for row in rows:
        if row["name"] == "layernorm-grads-all-reduce":
            first_sums.setdefault(row["step"], []).append(row)
    for before, row in zip([None] + rows, rows):
        if row["name"] == "layernorm-grads-all-reduce":
            begin = min(before["end"], row["start"])
            if row["stage"] == last_stage:
                of_stage = [s["start"] for s in first_sums[row["step"]] if s["stage"] == last_stage]
                end = max(begin, min(of_stage))
                yield {**row, "name": "loss-all-reduce", "group": f"data of stage {last_stage}",
                       "start": begin, "end": end}  # fmt: skip
                begin = end
            of_data = [s["start"] for s in first_sums[row["step"]] if s["data"] == row["data"]]
            if max(of_data) - min(of_data) < together:
                yield {**row, "name": "barrier", "group": f"stages of {row['data']}",
                       "start": begin, "end": row["start"]}  # fmt: skip
        yield row


def convert_file(path, into):
    rows = list(_with_waits(_merged(list(_rows(path)))))
    begin, at = {}, 0.0
    for step in sorted({row["step"] for row in rows}):
        begin[step] = at
        at += max(row["end"] for row in rows if row["step"] == step)
    with open(into, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["rank", "stream", "step", "name", "start (us)", "duration (us)", "group"])
        for row in rows:
            start = (begin[row["step"]] + row["start"]) * US
            table.writerow(
                [row["rank"], 0, row["step"], row["name"], f"{start:.0f}",
                 f"{(row['end'] - row['start']) * US:.0f}", row["group"]]
            )  # fmt: skip


def convert(data, into):
    folder = os.path.join(data, "straggler-timelines")
    for name in ("job_64_gpus", "job_8_gpus"):
        convert_file(os.path.join(folder, f"{name}.csv.gz"), os.path.join(into, f"{name}.ops.csv"))


if __name__ == "__main__":
    convert(*sys.argv[1:])
