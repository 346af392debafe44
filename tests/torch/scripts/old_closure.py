"""An optimizer of the old kind, which calls a closure first and steps through .data with gradients switched on."""
import torch
from torch import nn


class Plain(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure):
        loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad.data, alpha=-0.1)
        return loss


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizer = Plain(net.parameters())


def closure():
    optimizer.zero_grad()
    loss = net(torch.randn(8, 16).abs()).square().mean()
    loss.backward()
    return loss


for step in range(6):
    optimizer.step(closure)
