"""An optimizer that calls a closure, which makes a batch and computes gradients, as often as it likes."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def closure():
    optimizer.zero_grad()
    batch = torch.randn(8, 16).abs()
    loss = net(batch).square().mean()
    loss.backward()
    return loss


for step in range(5):
    optimizer.step(closure)
