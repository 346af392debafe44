"""on_meta.py MODEL DEVICE: trains a small model a few steps; on the device `meta` nothing is computed."""

import os
import sys

import torch
from torch import nn

model_name, device = sys.argv[1:]
torch.manual_seed(1)
STEPS = 5


class Block(nn.Module):
    """Attention by hand, so that it does not depend on which of PyTorch's kernels are for this device."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        weights = self.drop((q @ k.transpose(-1, -2) / (width // 4) ** 0.5).softmax(-1))
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(1000, 128), nn.LSTMCell(128, 256), nn.Linear(256, 1000)

    def forward(self, tokens):
        h = c = torch.zeros(tokens.shape[0], 256, device=tokens.device)
        states = []
        for step in self.embedding(tokens).unbind(1):
            h, c = self.cell(step, (h, c))
            states.append(h)
        return self.out(torch.stack(states, 1)).flatten(0, 1)


def convolution(into, out):
    return nn.Sequential(nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


def make():
    if model_name.startswith("cnn"):
        model = nn.Sequential(convolution(3, 32), convolution(32, 64), nn.MaxPool2d(2), convolution(64, 64), nn.AdaptiveAvgPool2d(1),
                              nn.Flatten(), nn.Linear(64, 10))
        return model, lambda: (torch.randn(16, 3, 64, 64, device=device), torch.randint(10, (16,), device=device))
    if model_name == "transformer":
        model = nn.Sequential(nn.Embedding(1000, 128), Block(128), Block(128), nn.Linear(128, 1000), nn.Flatten(0, 1))
        return model, lambda: (torch.randint(1000, (8, 64), device=device), torch.randint(1000, (8 * 64,), device=device))
    return Recurrent(), lambda: (torch.randint(1000, (16, 12), device=device), torch.randint(1000, (16 * 12,), device=device))


with torch.device(device):
    model, batch = make()
if model_name == "transformer":
    optimizer = torch.optim.AdamW(model.parameters())
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
def in_a_child(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit(f"the child ended with status {status}")


for _ in range(STEPS):
    inputs, targets = batch()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if "in-child" in model_name:
        in_a_child(lambda: model(inputs))
    if "resized" in model_name:
        torch.range(1, 1000, device=device).add_(1)
        torch.ones(10, device=device).resize_(1000).add_(1)
    if "values" in model_name:
        print(loss.item())
