#!/usr/bin/env python3
"""Trains a convolutional network on batches that worker processes make, saves checkpoints and resumes from them. A plain
PyTorch script: it knows nothing of Spillway."""

import argparse
import hashlib
import os
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noise with a bright square, whose place is the label. Workers read `background`, a tensor of the parent's."""

    def __init__(self, count, size):
        self.count, self.size = count, size
        self.background = torch.rand(3, size, size)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 16
        image = self.background + 0.1 * torch.randn(3, self.size, self.size, generator=torch.Generator().manual_seed(index))
        quarter = self.size // 4
        row, column = label // 4 * quarter, label % 4 * quarter
        image[:, row : row + quarter, column : column + quarter] += 1
        return image, label


def network(width=64, depth=8):
    layers = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * width, 16))


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="images a step (default %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="pixels an image is wide and high (default %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes that make batches (default %(default)s)")
    parser.add_argument("--checkpoint", metavar="FILE", help="save there after every other step, and resume from it")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    done = 0
    dataset = Shapes(options.steps * options.batch, options.size)
    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["steps"]
    rest = torch.utils.data.Subset(dataset, range(done * options.batch, len(dataset)))
    loader = DataLoader(rest, batch_size=options.batch, num_workers=options.workers)
    start = time.perf_counter()
    for step, (images, labels) in enumerate(loader, start=done):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()} seconds {time.perf_counter() - start:.3f}", flush=True)
        if options.checkpoint and step % 2 == 1:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": step + 1}
            torch.save(state, options.checkpoint + ".new")
            os.replace(options.checkpoint + ".new", options.checkpoint)
        start = time.perf_counter()
    print("weights", weights_hash(model), flush=True)


if __name__ == "__main__":
    main()
