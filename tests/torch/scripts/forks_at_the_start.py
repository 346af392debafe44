"""Forks again and again while another thread makes the first tensor, and Spillway starts for it."""

import os
import threading

import torch

first = threading.Thread(target=lambda: torch.empty(1024))
first.start()
children = []
while first.is_alive():
    child = os.fork()
    if child == 0:
        torch.ones(10)
        os._exit(0)
    children.append(child)
first.join()
print(sum(os.waitpid(child, 0)[1] for child in children), torch.ones(3).sum().item())
