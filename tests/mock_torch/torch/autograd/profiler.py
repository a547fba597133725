"""Profilers of a thread: one at a time."""

import threading

_thread = threading.local()


def _enable_profiler(config=None):
    if getattr(_thread, "enabled", False):
        raise RuntimeError("Profiler is already enabled on this thread.")
    _thread.enabled = True


def _prepare_profiler(config=None):
    pass


def _disable_profiler():
    _thread.enabled = False


class emit_nvtx:
    entered = 0

    def __init__(self, enabled=True, record_shapes=False):
        self.record_shapes = record_shapes

    def __enter__(self):
        _enable_profiler()
        emit_nvtx.entered += 1
        return self

    def __exit__(self, *_):
        _disable_profiler()
        return False


class profile:
    def __enter__(self):
        _prepare_profiler()
        _enable_profiler()
        return self

    def __exit__(self, *_):
        _disable_profiler()
        return False
