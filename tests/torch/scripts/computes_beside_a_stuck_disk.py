"""One thread trains, and its trace goes into the pipe that this script is given. The main one reads nothing from it until the pipe is
full, so that the other waits, and until it has itself computed much more; then it reads the trace."""
import fcntl
import os
import sys
import termios
import threading

import torch
from torch import nn

F_SETPIPE_SZ = 1031
pipe = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
size = fcntl.fcntl(pipe, F_SETPIPE_SZ, 4096)


def unread():
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def train():
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        net(torch.randn(8, 16)).mean().backward()
        optimizer.step()


trainer = threading.Thread(target=train)
trainer.start()
while unread() < size:
    torch.ones(1)
for _ in range(1000):
    torch.randn(8, 16).mul(2).sum().item()
print("full" if unread() == size else "not full", trainer.is_alive())
print(os.read(pipe, size)[:1].decode())
while trainer.is_alive():
    try:
        os.read(pipe, size)
    except BlockingIOError:  # There is nothing just now.
        pass
os.close(pipe)
