"""Published times of collectives as files of kind collectives."""

import json
import math
import re
from pathlib import Path
from statistics import median_high

from convert.schema import number, rows_of, write

NVLINK = ("a100_sxm4_80", "h100_sxm5_80", "b200_sxm_180", "b300")
SHIPPED = NVLINK + ("l40s",)  # those of nccl_measured.csv that a shipped calibration is fitted to
OTHER_RUNS = (("a100_sxm4_80", "nccl_a100_sxm_2.27.3.csv"),
              ("b200_sxm_180", "nccl_b200_sxm_2.28.9.csv"),
              ("h100_sxm5_80", "nccl_h100_sxm_2.27.3.csv"), ("l40s", "nccl_l40s_2.27.3.csv"))


def measured(device, op, ranks, size, time_us):
    op = "all_to_all" if op == "alltoall" else op
    return {"device": device, "op": op, "ranks": int(float(ranks)), "size_bytes": float(size),
            "time_us": time_us}


def curves(rows):
    """Each row with the number of its curve (op and number of ranks) and its place in it."""
    found = {}
    for row in rows:
        curve, place = found.get((row["op"], row["ranks"]), (len(found), 0))
        found[row["op"], row["ranks"]] = curve, place + 1
        yield row, curve, place


def every_fourth_left_out(rows):
    for row, curve, place in curves(rows):
        yield row, (place + curve) % 4 != 3


def eight_per_doubling(rows):
    """Of finely stepped tables eight sizes per doubling are fitted."""
    last = {}
    for row in rows:
        step = math.floor(8 * math.log2(row["size_bytes"]))
        curve = row["op"], row["ranks"]
        fitted = step > last.get(curve, -math.inf)
        last[curve] = max(step, last.get(curve, step))
        yield row, fitted


def workers(path, op, device, nodes=1):
    """Vidur: the median over the ranks of a job, of groups over so many nodes."""
    times = {}
    for row in rows_of(path):
        ranks, local = float(row["num_workers"]), float(row["devices_per_node"])
        if max(local, ranks) == nodes * local:
            times.setdefault((int(ranks), float(row["size"])), []).append(
                float(row[f"time_stats.{op}.median"]))
    return [measured(device, op, ranks, size, median_high(values) * 1e3)
            for (ranks, size), values in sorted(times.items())]


def lookup_tables(folder, device):
    """vTrain: nccl-tests on 2, 4, 6 and 8 ranks; times in ns."""
    rows = []
    for ranks in (2, 4, 6, 8):
        lines = (folder / f"AR_GPU{ranks}_1M_1024M.csv").read_text().splitlines()[1:]
        rows += [measured(device, "all_reduce", ranks, cells[0], float(cells[3]) * 1e-3)
                 for cells in (line.split(",") for line in lines if line)]
    return rows


def elements(path, device, dtype):
    """AIConfigurator: sizes in elements, times in ms. A size that comes again is another run."""
    runs, seen = [], {}
    for row in rows_of(path):
        if row["nccl_dtype"] != dtype:
            continue
        size = float(row["message_size"]) * (1 if dtype == "int8" else 2)
        found = measured(device, row["op_name"], row["num_gpus"], size, float(row["latency"]) * 1e3)
        key = found["op"], found["ranks"], size
        run = seen[key] = seen.get(key, -1) + 1
        if run == len(runs):
            runs.append([])
        runs[run].append(found)
    return runs


def sizes(path, device):
    """Galvatron: allreduce_size_N_MMB_time in ms."""
    rows = []
    for key, value in json.loads(path.read_text()).items():
        found = re.match(r"([a-z2]+)_size_(\d+)_(\d+)MB_time", key)
        if found:
            op = "all_to_all" if found.group(1) == "all2all" else "all_reduce"
            rows.append(measured(device, op, found.group(2), int(found.group(3)) * 2**20,
                                 value * 1e3))
    return rows


ORDER = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")


def call_log(path, device):
    """AICB: the median of the calls of one kind, group and size; the first call sets up."""
    times = {}
    for row in rows_of(path):
        op, ranks = row["comm_type"].removeprefix("CommType."), row["comm_group_size"]
        op = "all_to_all" if op == "alltoall" else op
        if op not in ORDER or ranks in ("None", ""):
            continue
        size, time = float(row["msg_size"]), float(row["_elapsed_time"])
        if size > 0 and time > 0:
            times.setdefault((ORDER.index(op), int(float(ranks)), size), []).append(time)
    return [measured(device, ORDER[op], ranks, size, median_high(values) * 1e3)
            for (op, ranks, size), values in sorted(times.items()) if len(values) >= 3]


def same_run(rows, others):
    """Half of its times equal is no accident."""
    times = {}
    for other in others:
        times.setdefault((other["op"], other["ranks"], other["size_bytes"]), []).append(
            other["time_us"])
    equal = sum(abs(row["time_us"] / time - 1) < 1e-3 for row in rows
                for time in times.get((row["op"], row["ranks"], row["size_bytes"]), []))
    return 2 * equal > len(rows)


def shipped(data, by_device):
    """Rows that the shipped calibrations were fitted to, and rows left out of the fits."""
    vidur, vtrain = data / "vidur-profiles" / "network", data / "vtrain-megatron-a100"
    dealt = []
    for device in SHIPPED:
        dealt += every_fourth_left_out(by_device[device])
        messages = {"a100_sxm4_80": "a100_dgx", "h100_sxm5_80": "h100_dgx"}.get(device)
        if messages:
            dealt += eight_per_doubling(workers(vidur / messages / "send_recv.csv.gz", "send_recv",
                                                device))
    dealt += eight_per_doubling(lookup_tables(vtrain / "nccl_allreduce_v100", "v100_sxm2_16"))
    for device, folder in (("a100_pcie_80", "a100_pairwise_nvlink"),
                           ("h100_pcie_80", "h100_pairwise_nvlink")):
        dealt += eight_per_doubling(workers(vidur / folder / "all_reduce.csv.gz", "all_reduce",
                                            device))
    for row, fitted in dealt:
        group = "nvlink" if row["device"] in NVLINK else row["device"]
        if row["op"] == "send_recv":
            group = "nvlink send_recv"
        yield {"case": f"{group}, {'fitted' if fitted else 'left out'}",
               "use": "fitted" if fitted else "row_left_out"} | row


def other_runs(data, by_device):
    """The same machines on other days: other versions of NCCL, and bytes instead of halves."""
    for device, file in OTHER_RUNS:
        for dtype in ("half", "int8"):
            for rows in elements(data / "aiconfigurator-kernels" / file, device, dtype):
                if dtype == "half" and same_run(rows, by_device[device]):
                    continue
                case = ("nvlink, other runs" if dtype == "half" else
                        "nvlink, int8" if device in NVLINK else "l40s, int8")
                yield from ({"case": case} | row for row in rows)
    yield from ({"case": "a100, vTrain"} | row for row in lookup_tables(
        data / "vtrain-megatron-a100" / "nccl_allreduce_a100", "a100_sxm4_80"))


def frameworks(data):
    """Calls timed inside a framework: all rows as nccl-tests would time them, and every second row
    with the overhead of a call, which the other rows give."""
    a100 = "a100_sxm4_80"
    sources = (
        ("a100, Vidur", workers(data / "vidur-profiles/network/a100_dgx/all_reduce.csv.gz",
                                "all_reduce", a100)),
        # The GPU is not named; priced as A100.
        ("a100?, Galvatron", sizes(
            data / "galvatron-profiles/hardware/sp_time_1nodes_8gpus_per_node.json", a100)),
        ("a100, AICB", call_log(data / "aicb-a100-comm" / "A100_example.csv.gz", a100)))
    for name, rows in sources:
        yield from ({"case": name} | row for row in rows)
        yield from ({"case": f"{name}, framework timing", "use": "row_left_out",
                     "timing": "framework"} | row
                    for row, curve, place in curves(rows) if (place + curve) % 2)


# Networks by words of a report: kind, Gbit/s of a node, latency of a message.
NETWORKS = {"p4d": ("efa", 400, 20), "p3dn": ("efa", 100, 20), "p6-b200": ("efa", 3200, 12),
            "4xHDR200": ("infiniband", 800, 2), "8x100G RoCE": ("roce", 800, 4)}


def over_network(kind, gbit, latency):
    return {"network": kind, "node_network_gbit": gbit, "latency_us": latency}


def nodes(data, reports):
    for row in rows_of(reports):
        count, ranks = int(row["nodes"]), int(row["gpus"])
        size = float(row["size_bytes"] or 2**30)  # without a size it is a large one
        time = (float(row["time_us"]) if row["time_us"] else
                size * 2 * (ranks - 1) / ranks / (float(row["busbw_gbs"]) * 1e9) * 1e6)
        device = "a100_sxm4_80" if row["gpu_id"] == "a100" else row["gpu_id"]
        found = {"case": "several nodes" if count > 1 else "one node, reports",
                 "name": row["system"], "nodes": count}
        found |= measured(device, "all_reduce", ranks, size, time)
        known = next((n for words, n in NETWORKS.items() if words in row["system"]), None)
        if count > 1 and known:
            found |= over_network(*known)
        if "ring only" in row["system"]:
            found["algorithm"] = "ring"
        yield found
    # Vidur's two nodes: the network is not stated, and was taken, with these rows in sight, as one
    # NIC of 100 Gbit/s for each with EFA's share.
    for row in workers(data / "vidur-profiles/network/a100_dgx/all_reduce.csv.gz", "all_reduce",
                       "a100_sxm4_80", 2):
        yield ({"case": "a100, Vidur, two nodes", "use": "fitted", "nodes": 2,
                "timing": "framework"} | row | over_network("efa", 100, 20))


def convert(data, into):
    data = Path(data)
    facts = next((folder for folder in (data, data.parent / "facts")
                  if (folder / "nccl_measured.csv").exists()), None)
    if facts is None:
        return
    by_device = {}
    for row in rows_of(facts / "nccl_measured.csv"):
        by_device.setdefault(row["gpu_id"], []).append(measured(
            row["gpu_id"], row["op"], row["num_gpus"], row["size_bytes"], float(row["time_us"])))
    for name, rows in (("shipped", shipped(data, by_device)),
                       ("other_runs", other_runs(data, by_device)),
                       ("frameworks", frameworks(data)),
                       ("nodes", nodes(data, facts / "nccl_observed_multinode.csv"))):
        named = [row | {"name": row.get("name") or
                        f"{row['device']} {row['op']} {row['ranks']} ranks "
                        f"{number(row['size_bytes'])} B",
                        "size_bytes": number(row["size_bytes"]), "time_us": repr(row["time_us"])}
                 for row in rows]
        write(Path(into) / "collectives" / f"{name}.csv", named)
