"""A thread prepares batches with PyTorch's operators, at its own pace; another one evaluates, logs and keeps copies."""
import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
shadow = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
optimizer = torch.optim.Adam(net.parameters())
batches, done = queue.Queue(maxsize=3), threading.Event()


def prepare():
    for _ in range(12):
        batches.put(torch.randn(8, 16).mul(2).add(1))


def watch():
    while not done.is_set():
        with torch.no_grad():
            net(torch.ones(4, 16)).sum().item()
        shadow.load_state_dict(net.state_dict())
        copies = [parameter.detach().clone() for parameter in net.parameters()]
        net.state_dict(), copies[0].mean().item(), loss.item()


loss = net(torch.ones(4, 16)).sum()
threads = [threading.Thread(target=prepare), threading.Thread(target=watch)]
for thread in threads:
    thread.start()
for step in range(12):
    optimizer.zero_grad()
    net(batches.get()).mean().backward()
    optimizer.step()
done.set()
for thread in threads:
    thread.join()
