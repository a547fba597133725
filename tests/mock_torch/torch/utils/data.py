from .._tensor import Tensor


class Dataset:
    pass


class DataLoader:
    def __init__(self, dataset, batch_size=1, **_):
        self.dataset, self.batch_size = dataset, batch_size

    def __iter__(self):
        for i in range(len(self.dataset) // self.batch_size):
            for j in range(self.batch_size):
                self.dataset[i * self.batch_size + j]
            yield Tensor(), Tensor()

    def __len__(self):
        return len(self.dataset) // self.batch_size
