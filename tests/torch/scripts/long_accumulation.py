"""More backward passes before the first optimizer step than would make an iteration without one; ends before a second."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(80):
    net(torch.randn(8, 16)).mean().backward()
optimizer.step()
