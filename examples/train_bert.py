#!/usr/bin/env python3
"""Trains a BERT-like encoder of 110 million parameters to guess masked words, with AdamW. A plain PyTorch script: it knows nothing of Spillway."""

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


class Bert(nn.Module):
    def __init__(self, words, context, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.guess = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, words))
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, text, masked):
        """The scores of all words at the masked places."""
        x = self.norm(self.words(text) + self.places.weight[: text.shape[1]])
        return self.guess(self.blocks(x)[masked])


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="texts a step (default %(default)s)")
    parser.add_argument("--length", type=int, default=128, help="words in a text (default %(default)s)")
    parser.add_argument("--layers", type=int, default=12, help="layers of 7 million parameters (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    options = parser.parse_args()

    words, mask = 30522, 103
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    model = Bert(words, options.length, width=768, heads=12, layers=options.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(options.steps):
        start = time.perf_counter()
        text = torch.randint(1000, words, (options.batch, options.length))
        masked = torch.zeros(options.length, dtype=torch.bool)
        masked[torch.randperm(options.length)[: max(1, options.length * 15 // 100)]] = True  # the same number in every text
        masked = masked.expand(options.batch, -1)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text.masked_fill(masked, mask), masked), text[masked])
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()} seconds {time.perf_counter() - start:.3f}", flush=True)
    print("weights", weights_hash(model), flush=True)


if __name__ == "__main__":
    main()
