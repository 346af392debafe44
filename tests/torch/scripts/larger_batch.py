"""After some steps every batch is larger: for good, so that another iteration repeats itself from then on.

Arguments: number of layers, number of steps, the first step of the larger batches, rows of a batch before it and from it on.
"""
import sys

import torch
from torch import nn

layers, steps, larger_from, rows, more_rows = map(int, sys.argv[1:])
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(layers)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(steps):
    batch = torch.randn(rows if step < larger_from else more_rows, 256)
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print("step", step, float(loss).hex())
