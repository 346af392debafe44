"""The forward pass of a part is computed again in the backward pass."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
parts = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Dropout(0.1)) for _ in range(3))
optimizer = torch.optim.AdamW(parts.parameters())
for step in range(5):
    x = torch.randn(16, 32)
    for part in parts:
        x = checkpoint(part, x, use_reentrant=step < 0)
    x.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
