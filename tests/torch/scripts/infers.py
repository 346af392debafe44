"""Applies frozen layers, and trains nothing. With 'numpy', each pass changes one number of each weight through numpy, which no operator
tells of."""

import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
layers = [torch.nn.Linear(1024, 1024) for _ in range(40)]
x = torch.randn(128, 1024)
with torch.no_grad():
    for step in range(8):
        if "numpy" in sys.argv:
            for number, layer in enumerate(layers):
                layer.weight.detach().numpy()[step, number] += 0.5
        y = x
        for layer in layers:
            y = torch.relu(layer(y))
        print("output", y.square().mean().item().hex(), flush=True)
