"""Trains the biases of frozen layers. With 'numpy', each step changes one number of each frozen weight through numpy, which no operator tells of."""

import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
layers = torch.nn.ModuleList([torch.nn.Linear(1024, 1024) for _ in range(40)])
for layer in layers:
    layer.weight.requires_grad_(False)
optimizer = torch.optim.SGD([layer.bias for layer in layers], lr=0.1)
x = torch.randn(128, 1024)
for step in range(12):
    if "numpy" in sys.argv:
        for number, layer in enumerate(layers):
            layer.weight.numpy()[step, number] += 0.5
    y = x
    for layer in layers:
        y = torch.relu(layer(y))
    loss = y.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item().hex(), flush=True)
print("weights", sum(layer.weight.double().sum() for layer in layers).item().hex())
