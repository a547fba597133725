"""A package that looks like PyTorch to the scripts of the tests, and computes nothing.

Every value is a Tensor of no shape; modules that compute launch a kernel of the mock driver
(tests/capture_targets/mock_gpu.h) where that is found. MOCK_TORCH_OLD takes away what came after
version 1.13.
"""

import os
import types

from . import _device
from ._tensor import Tensor, anything

__version__ = "1.13.0+mock" if os.environ.get("MOCK_TORCH_OLD") else "2.11.0+mock"


class dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name


float32, bfloat16, float16, int64 = (
    dtype(name) for name in ("float32", "bfloat16", "float16", "int64")
)

version = types.SimpleNamespace(cuda="13.0", git_version="mock")
cuda = _device.module()
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=False)),
    cudnn=types.SimpleNamespace(
        allow_tf32=False, benchmark=False, is_available=lambda: True, version=lambda: 91000
    ),
)


def compile(module, **_):
    return module


if not os.environ.get("MOCK_TORCH_OLD"):
    compiler = types.SimpleNamespace(is_compiling=lambda: False)


class autocast:
    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


no_grad = inference_mode = autocast


def device(name):
    return name


def where(*_):
    return Tensor(), Tensor()


def manual_seed(_):
    pass


def set_float32_matmul_precision(_):
    pass


from . import autograd, nn, optim, utils  # noqa: E402


def __getattr__(name):
    if name.startswith("__") or name in ("compiler", "_dynamo", "distributed"):
        raise AttributeError(name)
    return anything
