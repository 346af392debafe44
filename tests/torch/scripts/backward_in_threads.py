"""Each backward pass runs in a thread of its own, and the parameters change without an optimizer."""
import threading

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(16, 16)
for step in range(5):
    loss = net(torch.randn(8, 16)).mean()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
