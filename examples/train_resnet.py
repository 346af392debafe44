#!/usr/bin/env python3
"""Trains ResNet-50 on random images. A plain PyTorch script: it knows nothing of Spillway."""

import argparse
import hashlib
import time

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the last one widens fourfold."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + self.shortcut(x), inplace=True)


def resnet50(classes):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def weights_hash(model):
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6, help="training steps (default %(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="images a step (default %(default)s)")
    parser.add_argument("--size", type=int, default=160, help="pixels an image is wide and high (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same losses (default %(default)s)")
    parser.add_argument("--device", default="cpu", help="as PyTorch names it (default %(default)s)")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    model = resnet50(classes=1000).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
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
