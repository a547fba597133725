"""torch.cuda, on the mock driver."""

import ctypes
import time
import types

_driver = None
_tried = False
_initialized = False
_ran = []  # kernels of the forward pass, for the backward pass
_GRID = (ctypes.c_uint * 3)(64, 1, 1)
_BLOCK = (ctypes.c_uint * 3)(256, 1, 1)
_capturing = None


def _load():
    global _driver, _tried
    if not _tried:
        _tried = True
        try:
            _driver = ctypes.CDLL("libcuda.so.1")
            _driver.mock_launch
        except (OSError, AttributeError):
            _driver = None
    return _driver


def initialize():
    global _initialized
    if not _initialized and _load() is not None and _driver.cuInit(0) == 0:
        _initialized = True
    return _initialized


def launch(name, ns=2000):
    if not _initialized:
        return
    if _capturing is not None:
        _capturing.nodes += 1
        return
    _driver.mock_launch(name.encode(), _GRID, _BLOCK, ctypes.c_uint64(ns), 7)
    _ran.append(name)


def run_backward():
    names = _ran[-400:]
    _ran.clear()
    for name in reversed(names):
        launch(name + "_backward")
    _ran.clear()


def synchronize(*_):
    if initialize():
        _driver.mock_device_synchronize()


class Event:
    def __init__(self, **_):
        self.at = 0.0

    def record(self, *_):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3

    def synchronize(self):
        synchronize()


class CUDAGraph:
    nodes = 0

    def replay(self):
        if _initialized:
            _driver.mock_graph_launch(5, max(1, self.nodes), ctypes.c_uint64(1000), 7)


class graph:
    def __init__(self, captured, **_):
        self.captured = captured

    def __enter__(self):
        global _capturing
        _capturing = self.captured

    def __exit__(self, *_):
        global _capturing
        _capturing = None


class Stream:
    def __init__(self, *_, **__):
        pass

    def wait_stream(self, _):
        pass


class stream:
    def __init__(self, _):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def _range(function):
    """Ranges of NVTX, by the capture library's own entry."""

    def call(name=None):
        import os

        path = os.environ.get("NVTX_INJECTION64_PATH")
        if path:
            getattr(ctypes.CDLL(path), function)(b"", None if name is None else name.encode())

    return call


def _properties(*_):
    if not initialize():
        raise RuntimeError("Found no NVIDIA driver")
    return types.SimpleNamespace(multi_processor_count=1, total_memory=1 << 30, major=9, minor=0)


def module():
    return types.SimpleNamespace(
        is_available=lambda: _load() is not None and _driver.cuInit(0) == 0,
        is_initialized=lambda: _initialized,
        init=initialize,
        synchronize=synchronize,
        Event=Event,
        CUDAGraph=CUDAGraph,
        graph=graph,
        Stream=Stream,
        stream=stream,
        nvtx=types.SimpleNamespace(
            range_push=_range("rehearse_capture_push"), range_pop=_range("rehearse_capture_pop")
        ),
        current_stream=lambda *_: Stream(),
        is_current_stream_capturing=lambda: _capturing is not None,
        get_device_name=lambda *_: "Mock GPU",
        get_device_properties=_properties,
        device_count=lambda: 1 if _load() is not None else 0,
        max_memory_allocated=lambda *_: 1 << 20,
        reset_peak_memory_stats=lambda *_: None,
        empty_cache=lambda: None,
    )
