#!/usr/bin/env python3
"""Trains a GPT-2-like model on random text, with AdamW: of 204 million parameters, or one of the four sizes of GPT-2. A plain PyTorch
script: it knows nothing of Spillway."""

import argparse
import hashlib
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

SIZES = {"small": (12, 768), "medium": (24, 1024), "large": (36, 1280), "xl": (48, 1600)}  # layers and width of GPT-2


class Block(nn.Module):
    """Attention and a perceptron four times as wide, each after a normalisation and beside a shortcut."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, words, context, width, heads, layers, checkpointing):
        super().__init__()
        self.checkpointing = checkpointing
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, text):
        x = self.words(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.head(self.norm(x))


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=4, help="texts a step (default %(default)s)")
    parser.add_argument("--length", type=int, default=256, help="words in a text (default %(default)s)")
    parser.add_argument("--size", choices=SIZES, help="layers and width of one of OpenAI's; xl has 1.56 billion parameters")
    parser.add_argument("--layers", type=int, default=12, help="layers of 12.6 million parameters (default %(default)s)")
    parser.add_argument("--width", type=int, default=1024, help="a multiple of 64 (default %(default)s)")
    parser.add_argument("--words", type=int, default=50257, help="size of the vocabulary (default %(default)s)")
    parser.add_argument("--checkpointing", action="store_true", help="compute each layer again in the backward pass")
    parser.add_argument("--build-on-device", action="store_true", help="make the weights there: quicker, and others than the CPU makes")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    parser.add_argument("--device", default="cpu", help="as PyTorch names it (default %(default)s)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    layers, width = SIZES.get(options.size, (options.layers, options.width))
    with torch.device(options.device if options.build_on_device else "cpu"):
        model = Gpt(options.words, options.length, width, width // 64, layers, options.checkpointing)
    model.to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)  # That would make another copy of all weights.
    for step in range(options.steps):
        start = time.perf_counter()
        text = torch.randint(options.words, (options.batch, options.length + 1)).to(options.device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()} seconds {time.perf_counter() - start:.4f}", flush=True)
    print("weights", weights_hash(model), flush=True)


if __name__ == "__main__":
    main()
