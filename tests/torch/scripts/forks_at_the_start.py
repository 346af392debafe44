"""Forks again and again while another thread makes the first tensor, and Spillway starts for it.

The children make theirs after it: the first one's process is the one that is managed.
"""

import os
import signal
import threading

import torch

torch.empty(1, device="meta")  # What PyTorch makes once and without a tensor's memory is there for the children.
is_made, was_made = os.pipe()
first = threading.Thread(target=lambda: torch.empty(1024))
first.start()
children = []
while first.is_alive():
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # One that hangs would outlive the test.
        os.close(was_made)
        os.read(is_made, 1)
        torch.ones(10)
        os._exit(0)
    children.append(child)
first.join()
assert children
os.close(was_made)
print(sum(os.waitpid(child, 0)[1] for child in children), torch.ones(3).sum().item())
