"""A small real training job in PyTorch on CPUs, alone or data-parallel with gloo, which can record itself.

    train.py [--record FILE] [--loaders N] ...                 one process
    train.py --ranks 2 ...                                     as many processes, DistributedDataParallel
    train.py --ranks 2 --measure-link FILE                     the link between them, for whatif --network

It prints the mean step. --record writes a Chrome trace of all its steps instead of running unrecorded."""
import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn


class Samples(torch.utils.data.Dataset):
    """Samples around one centre per class; the mean of `draws` draws stands for the work of decoding."""

    def __init__(self, count, draws):
        self.count, self.draws = count, draws
        self.centres = torch.randn(10, 256)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.centres[i % 10] + torch.randn(self.draws, 256).mean(0), i % 10


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--hidden", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--loaders", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--record")
    parser.add_argument("--measure-link")
    return parser.parse_args()


def steps_of(options, rank):
    """Yields after each step."""
    widths = [256] + [options.width] * options.hidden
    layers = [part for i, o in zip(widths, widths[1:]) for part in (nn.Linear(i, o), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(options.width, 10))
    if options.ranks > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    count = options.batch * options.accumulate * (options.steps + 10)
    batches = iter(torch.utils.data.DataLoader(Samples(count, options.draws), options.batch,
                                               num_workers=options.loaders))
    for _ in range(options.steps + 10):
        optimizer.zero_grad()
        for part in range(options.accumulate):
            samples, labels = next(batches)
            nn.functional.cross_entropy(model(samples), labels).backward()
        optimizer.step()
        yield


def measure_link(file):
    """Least squares of the time of all-reduces against their size, each weighted by 1 / time^2."""
    rows = []
    for size in (1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22):
        values, times = torch.ones(size // 4), []
        for _ in range(30):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(values)
            times.append(time.perf_counter() - begin)
        rows.append((size, sorted(times)[15]))
    w = [1 / t ** 2 for _, t in rows]
    mx = sum(a * x for a, (x, _) in zip(w, rows)) / sum(w)
    mt = sum(a * t for a, (_, t) in zip(w, rows)) / sum(w)
    slope = (sum(a * (x - mx) * (t - mt) for a, (x, t) in zip(w, rows)) /
             sum(a * (x - mx) ** 2 for a, (x, _) in zip(w, rows)))
    ranks = dist.get_world_size()
    latency = max(0.0, mt - slope * mx) / (2 * (ranks - 1))  # of the ring
    with open(file, "w") as out:
        out.write(f"link: {{latency: {latency * 1e6:.3f} us, rate: {2 * (ranks - 1) / ranks / slope / 1e9:.3f} GB/s}}\n")


def run(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    if options.ranks > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                                world_size=options.ranks)
    if options.measure_link:
        return measure_link(options.measure_link) if rank == 0 else measure_link(os.devnull)
    steps = steps_of(options, rank)
    for _ in range(10):  # warm-up
        next(steps)
    if options.record:
        file = options.record if options.ranks == 1 else f"{options.record}/rank{rank}.json"
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            begin = time.perf_counter()
            for number in range(options.steps):
                with torch.profiler.record_function(f"ProfilerStep#{number}"):
                    next(steps)
            taken = time.perf_counter() - begin
        profiler.export_chrome_trace(file)
    else:
        begin = time.perf_counter()
        for _ in range(options.steps):
            next(steps)
        taken = time.perf_counter() - begin
    if rank == 0:
        print(f"mean step {taken / options.steps * 1e3:.3f} ms")


def main():
    options = parse()
    if options.ranks == 1:
        return run(0, options)
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        options.port = probe.getsockname()[1]
    torch.multiprocessing.spawn(run, (options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
