"""Shapes of published models, as the columns of a jobs file have them: from the models' own
configuration files, as far as tables of measured jobs name them."""


def gpt(hidden, layers, heads, sequence=0, vocabulary=51200):
    """GPT as Megatron builds it: feed-forward 4 hidden, learned positions, biases."""
    return {
        "hidden": hidden, "layers": layers, "heads": heads, "kv_heads": heads,
        "head_size": hidden // heads, "feed_forward": 4 * hidden, "vocabulary": vocabulary,
        "sequence": sequence, "gated": "false", "activation": "gelu", "norm": "layer",
        "positions": "learned", "tied_embedding": "true", "bias": "true"}


MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12),
       "1b": (2048, 24, 16), "3b": (2560, 32, 20), "7b": (4096, 32, 32), "13b": (5120, 40, 40),
       "30b": (7168, 48, 56), "70b": (8192, 80, 64)}


def plain(name):
    return "".join(c for c in name.lower() if c.isalnum())


def mpt(size):
    shape = MPT.get(plain(size))
    return gpt(*shape, vocabulary=50368) if shape else None


# hidden, layers, heads, kv_heads, head_size, feed_forward, vocabulary, experts, experts per token
NAMED = {"llama38b": (4096, 32, 32, 8, 128, 14336, 128256, 0, 0),
         "llama318b": (4096, 32, 32, 8, 128, 14336, 128256, 0, 0),
         "llama370b": (8192, 80, 64, 8, 128, 28672, 128256, 0, 0),
         "llama3170b": (8192, 80, 64, 8, 128, 28672, 128256, 0, 0),
         "llama31405b": (16384, 126, 128, 8, 128, 53248, 128256, 0, 0),
         "qwen330ba3b": (2048, 48, 32, 4, 128, 768, 151936, 128, 8),
         "qwen3235ba22b": (4096, 94, 64, 4, 128, 1536, 151936, 128, 8),
         "gptoss120b": (2880, 36, 64, 8, 64, 2880, 201088, 128, 4)}


def named(name):
    """Llama 3, Qwen3 and GPT-OSS in any spelling of case, dots, dashes and underscores; None for
    models with layers that no workload expresses (latent attention, state spaces)."""
    shape = NAMED.get(plain(name))
    if not shape:
        return None
    hidden, layers, heads, kv_heads, head_size, feed_forward, vocabulary, experts, each = shape
    gpt_oss = plain(name) == "gptoss120b"  # biases everywhere, activations clamped
    model = {
        "hidden": hidden, "layers": layers, "heads": heads, "kv_heads": kv_heads,
        "head_size": head_size, "feed_forward": feed_forward, "vocabulary": vocabulary,
        "gated": "true", "activation": "silu", "norm": "rms", "positions": "rotary",
        "tied_embedding": "false", "bias": "true" if gpt_oss else "false"}
    if experts:
        model |= {"experts": experts, "experts_per_token": each,
                  "expert_feed_forward": feed_forward,
                  "clamped_experts": "true" if gpt_oss else "false"}
    return model
