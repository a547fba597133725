"""A small real training job in PyTorch on CPUs, alone or data-parallel with gloo, which can record itself.

    train_torch.py [--record FILE] [--loaders N] ...     one process
    train_torch.py --ranks 2 ...                         two, with DistributedDataParallel
    train_torch.py --ranks 2 --measure-link FILE         the link between them, for whatif --network

It prints the mean step. With --record it also writes a Chrome trace of these steps."""
import argparse
import json
import os
import socket
import time

import torch
import torch.distributed as dist
from torch import nn


class Samples(torch.utils.data.Dataset):
    """Samples around one centre per class, each the mean of `draws` draws: work, as decoding would be."""

    def __init__(self, count, draws):
        self.count, self.draws = count, draws
        self.centres = torch.randn(10, 256)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.centres[i % 10] + torch.randn(self.draws, 256).mean(0), i % 10


class Layer(nn.Module):
    """A range of the recording has its number."""

    def __init__(self, number, inputs, outputs):
        super().__init__()
        self.name = f"layer {number}"
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        with torch.profiler.record_function(self.name):
            return torch.relu(self.linear(x))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--loaders", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--record")
    parser.add_argument("--measure-link")
    return parser.parse_args()


def steps_of(options):
    """Yields after each step."""
    mark = torch.profiler.record_function
    widths = [256] + [options.width] * options.hidden
    layers = [Layer(k, *sizes) for k, sizes in enumerate(zip(widths, widths[1:]))]
    model = nn.Sequential(*layers, nn.Linear(options.width, 10))
    if options.ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    count = options.batch * options.accumulate * (options.steps + 10)
    batches = iter(torch.utils.data.DataLoader(Samples(count, options.draws), options.batch,
                                               num_workers=options.loaders))
    for _ in range(options.steps + 10):
        optimizer.zero_grad()
        for _ in range(options.accumulate):
            samples, labels = next(batches)
            with mark("forward"):
                loss = nn.functional.cross_entropy(model(samples), labels)
            with mark("backward"):
                loss.backward()
        optimizer.step()
        yield


def measure_link(file):
    """Least squares of the mean time of all-reduces against their size, each weighted by 1 / time^2.
    The ranks compute before each, as in training: gloo's threads then wait for a core, some for a
    whole slice of the scheduler, which a mean has and a median has not."""
    rows, busy = [], torch.randn(256, 256)
    for size in (1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22):
        values, times = torch.ones(size // 4), []
        for _ in range(30):
            dist.barrier()
            work = time.perf_counter() + 5e-3
            while time.perf_counter() < work:
                torch.mm(busy, busy)
            begin = time.perf_counter()
            dist.all_reduce(values)
            times.append(time.perf_counter() - begin)
        rows.append((size, sum(times[5:]) / len(times[5:])))
    w = [1 / t ** 2 for _, t in rows]
    mx = sum(a * x for a, (x, _) in zip(w, rows)) / sum(w)
    mt = sum(a * t for a, (_, t) in zip(w, rows)) / sum(w)
    slope = (sum(a * (x - mx) * (t - mt) for a, (x, t) in zip(w, rows)) /
             sum(a * (x - mx) ** 2 for a, (x, _) in zip(w, rows)))
    ranks = dist.get_world_size()
    latency = max(0.0, mt - slope * mx) / (2 * (ranks - 1))  # of the ring
    with open(file, "w") as out:
        out.write(f"link: {{latency: {latency * 1e6:.3f} us, rate: {2 * (ranks - 1) / ranks / slope / 1e9:.3f} GB/s}}\n")


def write_trace(events, file):
    """As export_chrome_trace does, with the shapes that PyTorch without Kineto leaves out. All tensors
    that matter are of floats."""
    rows = [{"name": e.name, "ph": "X", "pid": 1, "tid": e.thread, "ts": e.time_range.start,
             "dur": e.time_range.elapsed_us(),
             "args": {"Input Dims": e.input_shapes, "Input type": ["float"] * len(e.input_shapes),
                      "Sequence number": e.sequence_nr, "Fwd thread id": e.fwd_thread}}
            for e in events]
    with open(file, "w") as out:
        json.dump({"traceEvents": rows}, out)


def run(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    if options.ranks > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                                world_size=options.ranks)
    if options.measure_link:
        return measure_link(options.measure_link if rank == 0 else os.devnull)
    steps = steps_of(options)
    for _ in range(10):  # warm-up
        next(steps)
    profiler = torch.autograd.profiler.profile(enabled=bool(options.record), record_shapes=True)
    with profiler:
        begin = time.perf_counter()
        for number in range(options.steps):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                next(steps)
        taken = time.perf_counter() - begin
    if options.record:
        write_trace(profiler.function_events, options.record)
    if rank == 0:
        print(f"mean step {taken / options.steps * 1e3:.3f} ms", flush=True)


def main():
    options = parse()
    if options.ranks == 1:
        return run(0, options)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        options.port = probe.getsockname()[1]
    torch.multiprocessing.spawn(run, (options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
