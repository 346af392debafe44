"""Operators that can be replayed, and others: in place, random, and one that keeps running statistics."""

import torch
from torch.nn import functional

torch.manual_seed(0)
convolution = torch.nn.Conv2d(3, 8, 3)
norm = torch.nn.BatchNorm2d(8)
head = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD([*convolution.parameters(), *norm.parameters(), *head.parameters()], lr=0.01, foreach=False)
elsewhere = bytearray(4 * 4 * 4)
factor = torch.frombuffer(elsewhere, dtype=torch.float32).reshape(4, 4)
for _ in range(6):
    optimizer.zero_grad()
    x = norm(convolution(torch.randn(4, 3, 16, 16)))
    x = functional.dropout(functional.relu(x, inplace=True).exp(), 0.5)
    x = head(x.mean((2, 3)))
    x = torch.mul(x, factor)
    x.square().sum().backward()
    optimizer.step()
