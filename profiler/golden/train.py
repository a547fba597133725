"""Trains the models of record-golden for a few steps: what is recorded, and what is timed.

train.py ITEM [ITEM ...], an item being MODEL:BATCH:DTYPE:MODE. Per item one line of JSON with the
median time of a step. It knows nothing of the recording.
"""

import argparse
import json
import statistics
import sys

import torch
from torch import nn

import models


class Slow(torch.utils.data.Dataset):
    """Samples that take the host some milliseconds each, as decoding and augmenting them does."""

    def __init__(self, side, samples, work):
        self.side, self.samples, self.work = side, samples, work

    def __len__(self):
        return self.samples

    def __getitem__(self, i):
        image = torch.rand(3, self.side, self.side)
        for _ in range(self.work):
            image = nn.functional.avg_pool2d(image.unsqueeze(0), 3, 1, 1).squeeze(0)
        return image, i % 10


class Timer:
    """When each step ended, by the device's clock."""

    def __init__(self, device):
        self.events = []
        self.cuda = device == "cuda"

    def mark(self):
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.events.append(event)
        else:
            import time

            self.events.append(time.perf_counter())

    def median_ms(self):
        if self.cuda:
            torch.cuda.synchronize()
            took = [a.elapsed_time(b) for a, b in zip(self.events, self.events[1:])]
        else:
            took = [(b - a) * 1e3 for a, b in zip(self.events, self.events[1:])]
        return statistics.median(took)


def set_precision(dtype):
    torch.backends.cuda.matmul.allow_tf32 = dtype != "fp32"
    torch.backends.cudnn.allow_tf32 = dtype != "fp32"
    torch.backends.cudnn.benchmark = True


def make_step(model, loss_of, dtype, mode, optimizer, device):
    """One training step on given inputs."""
    called = torch.compile(model) if mode == "compiled" else model

    def step(inputs):
        optimizer.zero_grad(set_to_none=mode != "graphed")
        with torch.autocast(device, dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = loss_of(called, inputs)
        loss.backward()
        optimizer.step()
        return loss

    return step


def graphed(step, inputs, n):
    """The step as one CUDA graph; runs it n times before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(max(3, n)):
            step(inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(inputs)
    return graph


def train(item, arguments):
    name, batch, dtype, mode = item.split(":")
    device, tiny = arguments.device, arguments.tiny
    set_precision(dtype)
    torch.manual_seed(0)
    loaded = name == "loader"
    model, inputs, loss_of = models.make(
        "resnet50" if loaded else name, 2 if tiny else int(batch), tiny, device
    )
    fused = {"capturable": True} if mode == "graphed" else {}
    sparse = name == "dlrm"
    optimizer = (
        torch.optim.SGD(model.parameters(), lr=1e-3)
        if sparse or name in ("mlp", "alexnet", "vgg16", "resnet50", "loader")
        else torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, **fused)
    )
    step = make_step(model, loss_of, dtype, mode, optimizer, device)
    steps = arguments.warm_up + arguments.steps
    timer = Timer(device)

    if mode == "graphed":
        graph = graphed(step, inputs, arguments.warm_up)
        timer.mark()
        for i in range(arguments.steps):
            torch.cuda.nvtx.range_push(f"step {i}")  # what no hook in Python can see
            graph.replay()
            torch.cuda.nvtx.range_pop()
            timer.mark()
    else:
        if loaded:
            rows = 2 if tiny else int(batch)
            data = Slow(64 if tiny else 224, rows * steps, 1 if tiny else 4)
            batches = torch.utils.data.DataLoader(data, batch_size=rows, num_workers=0 if tiny else 4)
        else:
            batches = [inputs] * steps
        for i, given in enumerate(batches):
            if loaded:
                given = [part.to(device) for part in given]
            loss = step(given)
            if i >= arguments.warm_up - 1:
                timer.mark()
        loss.item()
    parameters = sum(p.numel() for p in model.parameters())
    return {
        "item": item,
        "step_ms": timer.median_ms(),
        "steps": arguments.steps,
        "warm_up": arguments.warm_up,
        "parameters": parameters,
        "memory_bytes": torch.cuda.max_memory_allocated() if device == "cuda" else 0,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("items", nargs="+")
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    for item in arguments.items:
        print(json.dumps({"begins": item}), flush=True)
        print(json.dumps(train(item, arguments)), flush=True)
        if arguments.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    sys.exit(main())
