"""A thread trains what the main thread has made; the main thread evaluates meanwhile, at its own pace."""
import threading

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizer = torch.optim.Adam(net.parameters())
net(torch.zeros(1, 16))  # with gradients, as if to train: only to see that it runs


def train():
    for step in range(30):
        optimizer.zero_grad()
        net(torch.randn(8, 16)).mean().backward()
        optimizer.step()


thread = threading.Thread(target=train)
thread.start()
while thread.is_alive():
    with torch.no_grad():
        net(torch.ones(4, 16)).sum().item()
thread.join()
