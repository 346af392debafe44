"""Every batch has another shape: no iteration repeats itself."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.randn(4 + step, 16)).sum().backward()
    optimizer.step()
