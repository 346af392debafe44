"""touches_beside.py [apart]: from the seventh step on it reads, through numpy, all of a tensor that no operator uses: no plan foresees
that, and each step waits for it. `apart`: every second step from then on has a shape of its own."""

import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
beside = torch.ones(160, 1 << 18)
seen = beside.numpy()
layers = torch.nn.Sequential(*[layer for _ in range(16) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, momentum=0.9)
x = torch.randn(256, 1024)
apart = sys.argv[1:] == ["apart"]
for step in range(1, 31 + 10 * apart):
    loss = layers(x[:100 + step] if apart and step >= 7 and step % 2 else x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    read = int(seen[:, ::1024].sum()) if step >= 7 else 0
    print("loss", loss.item().hex(), read, flush=True)
