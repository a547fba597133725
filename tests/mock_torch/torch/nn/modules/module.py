"""Modules with the global hooks of PyTorch, in the order in which it calls them."""

import os
from collections import OrderedDict

from ..._tensor import Tensor

_before = OrderedDict()
_after = OrderedDict()
_after_always = set()


class _Handle:
    def __init__(self, hooks):
        self.hooks = hooks

    def remove(self):
        self.hooks.pop(id(self), None)


def _register(hooks, hook):
    handle = _Handle(hooks)
    hooks[id(handle)] = hook
    handle_list.append(handle)
    return handle


handle_list = []


def register_module_forward_pre_hook(hook):
    return _register(_before, hook)


if os.environ.get("MOCK_TORCH_OLD"):

    def register_module_forward_hook(hook):
        return _register(_after, hook)

else:

    def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
        handle = _register(_after, hook)
        if always_call:
            _after_always.add(id(handle))
        return handle


class Parameter(Tensor):
    def __init__(self, *_, **__):
        pass


class Module:
    def __init__(self):
        self._modules = OrderedDict()
        self.training = True

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self._modules[name] = value
        object.__setattr__(self, name, value)

    def __call__(self, *inputs, **named):
        for hook in tuple(_before.values()):
            hook(self, inputs)
        try:
            result = self.forward(*inputs, **named)
        except Exception:
            for key in _after_always & set(_after):
                _after[key](self, inputs, None)
            raise
        for hook in tuple(_after.values()):
            hook(self, inputs, result)
        return result

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(prefix + ("." if prefix else "") + name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def parameters(self):
        for module in self.modules():
            for value in list(vars(module).values()):
                if isinstance(value, Parameter):
                    yield value

    def to(self, *_, **__):
        from ... import _device

        if "cuda" in str(_) + str(__):
            _device.initialize()
        return self

    def cuda(self, *_):
        return self.to("cuda")

    def train(self, *_):
        return self

    eval = train
