import functools
import os

_post = []


class Optimizer:
    def __init__(self, params, *_, **__):
        self.params = list(params)
        kind = type(self)
        if not getattr(kind.step, "hooked", False):
            kind.step = self._hooked(kind.step)

    @staticmethod
    def _hooked(step):
        @functools.wraps(step)
        def wrapper(self, *arguments, **named):
            result = step(self, *arguments, **named)
            for hook in _post:
                hook(self, arguments, named)
            return result

        wrapper.hooked = True
        return wrapper

    def zero_grad(self, **_):
        pass


if not os.environ.get("MOCK_TORCH_OLD"):

    def register_optimizer_step_post_hook(hook):
        _post.append(hook)
