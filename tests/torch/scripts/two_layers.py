"""two_layers.py WIDTH: two linear layers of that width and Adam, whose state is three times as large: few kernels, much memory."""

import sys

import torch

torch.manual_seed(1)
torch.ones(1).sqrt(), torch.ones(1).tanh()  # Two threads must not be their first callers (pytorch/pytorch#188792).
width = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, width))
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
batch = torch.randn(256, width)
for step in range(7):
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print(step, float(loss).hex(), flush=True)
