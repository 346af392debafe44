"""An optimizer of the old kind: it steps through .data, with gradients switched on but for the last bit."""
import torch
from torch import nn


class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p.data))
                momentum.mul_(0.9).add_(p.grad.data)
                step = momentum * 0.1
                with torch.no_grad():
                    p.sub_(step)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizer = Momentum(net.parameters())
for step in range(5):
    optimizer.zero_grad()
    net(torch.randn(8, 16)).mean().backward()
    optimizer.step()
