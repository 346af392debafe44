#!/usr/bin/env python3
"""Trains a Llama-like model of 1, 3 or 7 billion parameters on random text, with AdamW: all of it, or low-rank adapters beside its frozen
weights (--lora). A plain PyTorch script: it knows nothing of Spillway."""

import argparse
import functools
import hashlib
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SIZES = {  # layers, width, heads, heads of keys and values, width of the perceptron, words
    "tiny": (4, 512, 8, 4, 1376, 4000),
    "1b": (16, 2048, 32, 8, 8192, 128256),
    "3b": (28, 3072, 24, 8, 8192, 128256),
    "7b": (32, 4096, 32, 32, 11008, 32000),
}


class Adapted(nn.Module):
    """A frozen linear layer with a trained product of two thin matrices beside it."""

    def __init__(self, rank, inputs, outputs):
        super().__init__()
        self.frozen = nn.Linear(inputs, outputs, bias=False).requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        return self.frozen(x) + F.linear(F.linear(x, self.down), self.up)


def rotated(x, cos, sin):
    """Tells attention where each word stands: pairs of numbers turn by an angle that grows with the place."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


class Block(nn.Module):
    """Attention, of which several heads share keys and values, and a gated perceptron, each after a normalisation and beside a shortcut."""

    def __init__(self, linear, width, heads, key_heads, inner):
        super().__init__()
        self.heads, self.key_heads = heads, key_heads
        self.norm1 = nn.RMSNorm(width, eps=1e-5)
        self.q = linear(width, width)
        self.k = linear(width, width // heads * key_heads)
        self.v = linear(width, width // heads * key_heads)
        self.out = linear(width, width)
        self.norm2 = nn.RMSNorm(width, eps=1e-5)
        self.gate = linear(width, inner)
        self.up = linear(width, inner)
        self.down = linear(inner, width)

    def shared(self, x):
        """The same keys, or values, for all heads that share them."""
        batch, _, length, size = x.shape
        return x[:, :, None].expand(-1, -1, self.heads // self.key_heads, -1, -1).reshape(batch, self.heads, length, size)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (linear(y).view(batch, length, -1, width // self.heads).transpose(1, 2) for linear in (self.q, self.k, self.v))
        k, v = self.shared(rotated(k, cos, sin)), self.shared(v)
        y = F.scaled_dot_product_attention(rotated(q, cos, sin), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, size, length, lora, checkpointing):
        super().__init__()
        layers, width, heads, key_heads, inner, words = SIZES[size]
        self.checkpointing = checkpointing
        linear = functools.partial(Adapted, lora) if lora else functools.partial(nn.Linear, bias=False)
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(linear, width, heads, key_heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        if size != "7b":  # The smaller ones save memory so.
            self.head.weight = self.words.weight
        if lora:
            for module in (self.words, self.head):
                module.requires_grad_(False)
        pairs = width // heads // 2
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(pairs) / pairs)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, text):
        x = self.words(text)
        for block in self.blocks:
            if self.checkpointing:
                x = checkpoint(block, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="1b", help="(default %(default)s)")
    parser.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="texts a step (default %(default)s)")
    parser.add_argument("--length", type=int, default=256, help="words in a text (default %(default)s)")
    parser.add_argument("--lora", type=int, default=0, metavar="RANK", help="train adapters of this rank, and nothing else")
    parser.add_argument("--checkpointing", action="store_true", help="compute each layer again in the backward pass")
    parser.add_argument("--autocast", action="store_true", help="multiply in bfloat16; weights and optimizer stay in 32 bits")
    parser.add_argument("--build-on-device", action="store_true", help="make the weights there: quicker, and others than the CPU makes")
    parser.add_argument("--no-hash", action="store_true", help="do not read all weights at the end")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    parser.add_argument("--device", default="cpu", help="as PyTorch names it (default %(default)s)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    with torch.device(options.device if options.build_on_device else "cpu"):
        model = Llama(options.size, options.length, options.lora, options.checkpointing)
    model.to(options.device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, foreach=False)  # That would make another copy of all weights.
    words, kind = model.words.num_embeddings, torch.device(options.device).type
    for step in range(options.steps):
        start = time.perf_counter()
        text = torch.randint(words, (options.batch, options.length + 1)).to(options.device)
        optimizer.zero_grad()
        with torch.autocast(kind, torch.bfloat16, enabled=options.autocast):
            loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1).float(), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()} seconds {time.perf_counter() - start:.4f}", flush=True)
    if not options.no_hash:
        print("weights", weights_hash(model), flush=True)


if __name__ == "__main__":
    main()
