"""One rank of two that torchrun starts: averages_gradients.py FOLDER. Its losses and a hash of its weights go to FOLDER/results-RANK."""

import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 768

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1)
layers = [layer for _ in range(6) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(2 + rank)
lines = []
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(32, WIDTH)).square().mean()
    loss.backward()
    optimizer.step()
    lines.append(loss.item().hex())
weights = hashlib.sha256()
for parameter in model.parameters():
    weights.update(parameter.detach().numpy().tobytes())
lines.append(weights.hexdigest())
with open(os.path.join(sys.argv[1], f"results-{rank}"), "w", encoding="ascii") as file:
    file.write("\n".join(lines))
dist.destroy_process_group()
