"""Small programs for the checks of record-golden. Each prints one line of JSON."""

import json
import os
import signal
import statistics
import sys
import time

import torch


def launches(n):
    """Time of one launch of a kernel that does nothing much, back to back."""
    x = torch.zeros(1, device="cuda")
    torch.cuda.init()
    took = []
    for _ in range(6):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            x.add_(1)
        enqueued = time.perf_counter()
        torch.cuda.synchronize()
        took.append((enqueued - begin) / n * 1e6)
    return {"us_per_launch": statistics.median(took[1:])}


def graph(nodes, replays):
    """Time of one replay of a graph of so many kernels."""
    torch.cuda.init()
    x = torch.zeros(1, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        for _ in range(nodes):
            x.add_(1)
    took = []
    for _ in range(replays):
        begin = time.perf_counter()
        made.replay()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - begin) * 1e6)
    return {"us_per_replay": statistics.median(took[1:])}


def events(size):
    """One matrix product many times, each between two events."""
    torch.cuda.init()
    a = torch.randn(size, size, device="cuda").to(torch.bfloat16)
    took = []
    for i in range(25):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.nn.functional.linear(a, a)
        end.record()
        torch.cuda.synchronize()
        if i >= 5:
            took.append(begin.elapsed_time(end))
    return {"ms": took}


def ends(way):
    """Work of a second, then an end."""
    torch.cuda.init()
    x = torch.zeros(1, device="cuda")
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < 1 and n < 20000:
        x.add_(1)
        n += 1
    torch.cuda.synchronize()
    print(json.dumps({"launched": n}), flush=True)
    if way == "_exit":
        os._exit(0)
    if way == "term":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)


def nccl(_):
    """Collectives of one rank alone."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_nccl_available():
        return {"absent": True}
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    distributed.init_process_group("nccl", rank=0, world_size=1)
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(10):
        distributed.all_reduce(x)
    torch.cuda.synchronize()
    distributed.destroy_process_group()
    return {"collectives": 10, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}


def versions():
    """What meta.yaml says of the machine."""
    properties = torch.cuda.get_device_properties(0)
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return {
        "gpu": torch.cuda.get_device_name(0),
        "multiprocessors": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cudnn": cudnn,
        "python": sys.version.split()[0],
    }


def main(words):
    probe = globals()[words[0]]
    said = probe(*(int(word) if word.isdigit() else word for word in words[1:]))
    if said is not None:
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
