"""A generator and a discriminator of the same shape, each with an optimizer of its own, in turns."""
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
critic = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizers = [torch.optim.Adam(net.parameters()) for net in (critic, generator)]
for step in range(5):
    for optimizer in optimizers:
        optimizer.zero_grad()
        critic(generator(torch.randn(8, 16))).mean().backward()
        optimizer.step()
