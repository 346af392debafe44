"""One optimizer for each parameter, which makes its step as soon as the gradient is there. With 'beside', another thread runs an
operator in the middle of it each time."""
import queue
import sys
import threading

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(layer for _ in range(10) for layer in (nn.Linear(16, 16), nn.ReLU())))
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.1, momentum=0.9) for parameter in net.parameters()}
asked, done = queue.Queue(), queue.Queue()


def beside():
    while asked.get():
        done.put(torch.ones(4).add(1))


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()
    if "beside" in sys.argv:
        asked.put(True)
        done.get()


for parameter in net.parameters():
    parameter.register_post_accumulate_grad_hook(step)
thread = threading.Thread(target=beside)
thread.start()
for _ in range(6):
    net(torch.randn(8, 16)).square().mean().backward()
asked.put(False)
thread.join()
