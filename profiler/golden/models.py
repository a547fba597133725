"""The models of record-golden, in plain PyTorch, each with data at random.

make(name, batch, tiny, device) gives a model, its inputs, and loss(model, inputs). `tiny` keeps
the structure and makes everything small, for machines without a GPU.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self, width, layers, classes):
        super().__init__()
        parts = []
        for _ in range(layers):
            parts += [nn.Linear(width, width), nn.ReLU()]
        self.body = nn.Sequential(*parts)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))


class AlexNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.AdaptiveAvgPool2d(6),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(),
            nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


class Vgg16(nn.Module):
    def __init__(self, classes):
        super().__init__()
        parts, before = [], 3
        for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
            if width == 0:
                parts.append(nn.MaxPool2d(2, 2))
                continue
            parts += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
            before = width
        self.features = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(7))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU()
        self.shortcut = (
            nn.Identity()
            if stride == 1 and before == 4 * width
            else nn.Sequential(
                nn.Conv2d(before, 4 * width, 1, stride=stride, bias=False),
                nn.BatchNorm2d(4 * width),
            )
        )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        return self.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self, classes, blocks=(3, 4, 6, 3)):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )  # fmt: skip
        parts, before = [], 64
        for stage, count in enumerate(blocks):
            width = 64 << stage
            for i in range(count):
                parts.append(Bottleneck(before, width, 2 if stage > 0 and i == 0 else 1))
                before = 4 * width
        self.body = nn.Sequential(*parts)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


def attend(q, k, v, causal):
    """Attention over (batch, heads, tokens, width)."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q.matmul(k.transpose(-1, -2)) * q.shape[-1] ** -0.5  # before PyTorch 2.0
    if causal:
        ahead = torch.ones(scores.shape[-2:], device=q.device).triu(1).bool()
        scores = scores.masked_fill(ahead, float("-inf"))
    return scores.softmax(-1).matmul(v)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        return self.out(attend(q, k, v, self.causal).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    """GPT-2 normalises before its parts, BERT after them."""

    def __init__(self, width, heads, causal, before):
        super().__init__()
        self.attention = Attention(width, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.before = before

    def forward(self, x):
        if self.before:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Transformer(nn.Module):
    """BERT or GPT-2: embeddings, blocks, a head over the vocabulary."""

    def __init__(self, vocabulary, tokens, width, heads, layers, causal):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(
            *(Block(width, heads, causal, before=causal) for _ in range(layers))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight
        self.tokens = tokens

    def forward(self, ids):
        places = torch.arange(self.tokens, device=ids.device)
        return self.head(self.norm(self.blocks(self.words(ids) + self.places(places))))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * (x.float().pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt().to(x.dtype) * self.weight


class LlamaBlock(nn.Module):
    """Grouped queries, rotary places, a gated MLP."""

    def __init__(self, width, heads, groups, inner, tokens):
        super().__init__()
        self.heads, self.groups, self.head_width = heads, groups, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.head_width, bias=False)
        self.v = nn.Linear(width, groups * self.head_width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)
        rates = 10000.0 ** (-torch.arange(0, self.head_width, 2) / self.head_width)
        angles = torch.outer(torch.arange(tokens).float(), rates).repeat(1, 2)
        self.cosine, self.sine = nn.Parameter(angles.cos()), nn.Parameter(angles.sin())
        self.cosine.requires_grad = self.sine.requires_grad = False

    def rotate(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cosine + torch.cat((-right, left), -1) * self.sine

    def forward(self, x):
        y = self.norm1(x)
        q = self.q(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k = self.k(y).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        v = self.v(y).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        q, k = self.rotate(q).to(v.dtype), self.rotate(k).to(v.dtype)
        k = k.repeat_interleave(self.heads // self.groups, 1)
        v = v.repeat_interleave(self.heads // self.groups, 1)
        x = x + self.o(attend(q, k, v, True).transpose(1, 2).flatten(-2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Dlrm(nn.Module):
    """Embedding tables, a bottom and a top MLP, and the products of all pairs between them."""

    def __init__(self, tables, rows, width, dense):
        super().__init__()
        self.tables = nn.ModuleList(
            [nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)]
        )
        self.bottom = nn.Sequential(
            nn.Linear(dense, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
            nn.Linear(256, width), nn.ReLU(),
        )  # fmt: skip
        pairs = (tables + 1) ** 2
        self.top = nn.Sequential(
            nn.Linear(width + pairs, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(),
            nn.Linear(512, 1),
        )  # fmt: skip

    def forward(self, inputs):
        dense, sparse = inputs
        x = self.bottom(dense)
        features = torch.stack([x] + [table(ids) for table, ids in zip(self.tables, sparse)], 1)
        products = features.matmul(features.transpose(1, 2)).flatten(1)
        return self.top(torch.cat((x, products), 1)).squeeze(1)


class Moe(nn.Module):
    """A block whose MLP is one of several experts for each token (the best two, by weight)."""

    def __init__(self, width, heads, experts):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, True)
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
                for _ in range(experts)
            ]
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        flat = self.norm2(x).flatten(0, 1)
        weights, chosen = self.router(flat).softmax(-1).topk(2, -1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, place = torch.where(chosen == i)
            out = out.index_add(
                0, token, (expert(flat[token]) * weights[token, place].unsqueeze(1)).to(out.dtype)
            )
        return x + out.view_as(x)


def _classes(model, inputs):
    images, labels = inputs
    return F.cross_entropy(model(images), labels)


def _words(model, inputs):
    ids, labels = inputs
    return F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())


def _square(model, inputs):
    return model(inputs[0]).float().pow(2).mean()


def _clicks(model, inputs):
    return F.binary_cross_entropy_with_logits(model(inputs[:2]), inputs[2])


def make(name, batch, tiny, device):
    def randn(*shape):
        return torch.randn(*shape, device=device)

    def below(n, *shape):
        return torch.randint(0, n, shape, device=device)

    if name == "mlp":
        width = 64 if tiny else 4096
        return Mlp(width, 3, 10).to(device), (randn(batch, width), below(10, batch)), _classes
    if name in ("alexnet", "vgg16", "resnet50"):
        side, classes = (64, 10) if tiny else (224, 1000)
        if name == "resnet50":
            model = ResNet50(classes, (1, 1, 1, 1) if tiny else (3, 4, 6, 3))
        else:
            model = {"alexnet": AlexNet, "vgg16": Vgg16}[name](classes)
        return model.to(device), (randn(batch, 3, side, side), below(classes, batch)), _classes
    if name in ("bert_large", "gpt2_medium"):
        causal = name == "gpt2_medium"
        vocabulary, tokens = (50257, 1024) if causal else (30522, 128)
        width, heads, layers = 1024, 16, 24
        if tiny:
            vocabulary, tokens, width, heads, layers = 100, 16, 32, 4, 2
        model = Transformer(vocabulary, tokens, width, heads, layers, causal).to(device)
        return model, (below(vocabulary, batch, tokens), below(vocabulary, batch, tokens)), _words
    if name == "llama_blocks":
        width, heads, groups, inner, tokens = (
            (32, 4, 2, 64, 16) if tiny else (4096, 32, 8, 14336, 2048)
        )
        blocks = [LlamaBlock(width, heads, groups, inner, tokens) for _ in range(2 if tiny else 4)]
        return nn.Sequential(*blocks).to(device), (randn(batch, tokens, width),), _square
    if name == "dlrm":
        tables, rows, dense = (4, 100, 13) if tiny else (26, 200000, 13)
        sparse = [below(rows, batch, 4) for _ in range(tables)]
        model = Dlrm(tables, rows, 16 if tiny else 64, dense).to(device)
        return model, (randn(batch, dense), sparse, torch.rand(batch, device=device)), _clicks
    if name == "moe":
        width, heads, tokens = (32, 4, 16) if tiny else (2048, 16, 1024)
        return Moe(width, heads, 4).to(device), (randn(batch, tokens, width),), _square
    raise SystemExit(f"models.py: no model {name}")
