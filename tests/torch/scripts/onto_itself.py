"""Adds to a part of a tensor by index: the sum is copied onto itself at the end, which touches nothing; another copy does."""
import torch

data = torch.zeros(1 << 20)
layer = torch.nn.Linear(1024, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    layer(data.view(-1, 1024)).square().mean().backward()
    optimizer.step()
    data[::2] += 1
    data[2048:3072] = data[:1024]
