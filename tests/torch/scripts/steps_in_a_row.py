"""Two optimizers that make their steps one after the other: one iteration, which starts with its forward pass."""
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(16, 16), nn.Linear(16, 4)
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
for step in range(5):
    loss = second(first(torch.randn(8, 16)).relu()).sum()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    for optimizer in optimizers:
        optimizer.zero_grad()
