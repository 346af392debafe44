"""One optimizer for each parameter, which makes its step as soon as the gradient is there."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(layer for _ in range(10) for layer in (nn.Linear(16, 16), nn.ReLU())))
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1, momentum=0.9) for parameter in net.parameters()}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in net.parameters():
    parameter.register_post_accumulate_grad_hook(step)
for _ in range(6):
    net(torch.randn(8, 16)).square().mean().backward()
