"""Public cluster traces as job lists of `rehearse fleet` (docs/formats/jobs.md):
python3 -m convert.job_lists TRACE INTO.csv

A table is known by its columns, Philly's by its first bracket, and PAI's by its file names. Jobs
without a GPU, and jobs that never ran, are left out; the first arrival is the origin. The work of a
job is its run time on its GPUs."""

import csv
import json
import math
import sys
from datetime import datetime, timezone
from pathlib import Path

from convert.schema import number, rows_of, write

PAI_JOBS = "job_name,inst_id,user,status,start_time,end_time".split(",")
PAI_TASKS = ("job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,"
             "gpu_type").split(",")


def date(text):
    """Seconds since 1970 of "2020-06-09 18:41:01"; nothing for none."""
    if text in (None, "", "None"):
        return None
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


def seconds(text):
    return float(text) if text else None


def helios(row):
    return (row["job_id"], row["user"], date(row["submit_time"]), seconds(row["duration"]),
            float(row["gpu_num"]))


def openb(row):
    """A pod of part of a GPU counts as one."""
    begin, end = seconds(row["scheduled_time"]), seconds(row["deletion_time"])
    ran = None if begin is None or end is None else end - begin
    return row["name"], "", seconds(row["creation_time"]), ran, float(row["num_gpu"])


def alibaba_spot(row):
    return (row["job_name"], row["organization"], seconds(row["submit_time"]),
            seconds(row["duration"]), float(row["gpu_request"]) * float(row["worker_num"]))


def tiresias(row):
    return (row["job_id"], "", seconds(row["submit_time"]), seconds(row["duration"]),
            float(row["num_gpu"]))


TABLES = {("vc", "gpu_num", "submit_time", "duration"): helios,
          ("gpu_milli", "num_gpu", "scheduled_time", "deletion_time"): openb,
          ("organization", "gpu_request", "worker_num"): alibaba_spot,
          ("num_gpu", "submit_time", "duration", "interval"): tiresias}


def philly(path):
    """A job has the GPUs of its largest attempt, and the work of all that began and ended."""
    for job in json.loads(Path(path).read_text()):
        gpus = work = 0
        ran = None
        for attempt in job["attempts"]:
            begin, end = date(attempt["start_time"]), date(attempt["end_time"])
            held = sum(len(server["gpus"]) for server in attempt["detail"])
            if begin is not None and end is not None and end >= begin and held:
                gpus, work = max(gpus, held), work + end - begin
                ran = work
        yield job["jobid"], job["user"], date(job["submitted_time"]), ran, gpus


def headless(path, columns):
    """The rows of a table that may lack the heading of its documentation."""
    with open(path, newline="") as file:
        rows = [dict(zip(columns, cells)) for cells in csv.reader(file)]
    return rows[1:] if rows and list(rows[0].values()) == columns else rows


def pai(folder):
    """The GPUs of a job are those of all its tasks, an instance of part of a GPU holding one. It ran
    from the first begin of a task with GPUs to the last end."""
    tasks = {}
    for row in headless(folder / "pai_task_table.csv", PAI_TASKS):
        gpus = math.ceil(float(row["plan_gpu"] or 0) / 100) * float(row["inst_num"] or 0)
        if gpus:
            tasks.setdefault(row["job_name"], []).append(
                (gpus, seconds(row["start_time"]), seconds(row["end_time"])))
    for row in headless(folder / "pai_job_table.csv", PAI_JOBS):
        held = tasks.get(row["job_name"], [])
        ran = None
        if held and all(None not in task and task[2] >= task[1] for task in held):
            ran = max(task[2] for task in held) - min(task[1] for task in held)
        yield (row["job_name"], row["user"], seconds(row["start_time"]), ran,
               sum(task[0] for task in held))


def jobs_of(path):
    """Name, user, arrival, work and GPUs of each job of a trace."""
    path = Path(path)
    if path.name.startswith("pai_"):
        return list(pai(path.parent))
    with open(path) as file:
        if file.read(4096).lstrip().startswith("["):
            return list(philly(path))
    rows = rows_of(path)
    for columns, job in TABLES.items():
        if rows and all(column in rows[0] for column in columns):
            return [job(row) for row in rows]
    raise SystemExit(f"{path}: a trace whose columns are not known")


def convert(path, into):
    """Writes the list; returns how many jobs are in it, and how many were left out."""
    every = jobs_of(path)
    jobs = [job for job in every
            if job[2] is not None and job[3] is not None and job[3] >= 0 and job[4] > 0]
    first = min((job[2] for job in jobs), default=0)
    write(Path(into), [{"job": name, "user": user, "submit_s": number(submit - first),
                        "duration_s": number(work), "gpus": number(gpus)}
                       for name, user, submit, work, gpus in jobs])
    return len(jobs), len(every) - len(jobs)


if __name__ == "__main__":
    kept, left_out = convert(*sys.argv[1:])
    print(f"{kept} jobs; {left_out} rows without a GPU, or that never ran, left out")
