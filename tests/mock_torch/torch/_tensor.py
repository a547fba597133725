"""The one value there is."""


def anything(*arguments, **named):
    return Tensor()


class Tensor:
    requires_grad = True
    data = grad = None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("_"):  # in place: work for the device
            from . import _device

            _device.launch("mock_" + name.strip("_"))
        return anything

    def backward(self, *_):
        from . import _device

        _device.run_backward()

    def chunk(self, n, *_):
        return [Tensor() for _ in range(n)]

    def topk(self, *_, **__):
        return Tensor(), Tensor()

    def item(self):
        return 0.5

    def tolist(self):
        return [0]

    def numel(self):
        return 1000

    def __getitem__(self, _):
        return Tensor()

    def __setitem__(self, *_):
        pass

    def __bool__(self):
        return True

    def __float__(self):
        return 0.5

    def __len__(self):
        return 4

    def __eq__(self, _):
        return Tensor()

    __hash__ = object.__hash__


for _name in "add sub mul truediv matmul pow radd rsub rmul rtruediv rpow neg iadd imul lt gt".split():
    setattr(Tensor, "__%s__" % _name, lambda self, *_: self if self is not None else Tensor())
