#!/usr/bin/env python3
"""Trains a vision transformer on random images, with AdamW: ViT-S/16, or with `--width 1024 --layers 24` ViT-L/16. A plain PyTorch
script: it knows nothing of Spillway."""

import argparse
import hashlib
import time

import torch
from torch import nn
from torch.nn import functional as F


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
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, classes, size, patch, width, heads, layers):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="images a step (default %(default)s)")
    parser.add_argument("--size", type=int, default=224, help="pixels an image is wide and high (default %(default)s)")
    parser.add_argument("--layers", type=int, default=12, help="layers of 1.8 million parameters (default %(default)s)")
    parser.add_argument("--width", type=int, default=384, help="a multiple of 64 (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    parser.add_argument("--device", default="cpu", help="as PyTorch names it (default %(default)s)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    model = Vit(classes=1000, size=options.size, patch=16, width=options.width, heads=options.width // 64, layers=options.layers)
    model.to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)  # That would make another copy of all weights.
    for step in range(options.steps):
        start = time.perf_counter()
        images = torch.randn(options.batch, 3, options.size, options.size).to(options.device)
        labels = torch.randint(1000, (options.batch,)).to(options.device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()} seconds {time.perf_counter() - start:.4f}", flush=True)
    print("weights", weights_hash(model), flush=True)


if __name__ == "__main__":
    main()
