"""holds_memory.py MIB MINE OTHER: makes so many MiB of tensors; says so in a FIFO, MINE, waits until OTHER says so, and then
checks them."""
import os
import signal
import sys

import torch

mib, mine, other = int(sys.argv[1]), sys.argv[2], sys.argv[3]
tensors = [torch.full((1 << 20,), float(i)) for i in range(mib // 4)]
signal.alarm(120)  # The other one may have ended.
said, heard = os.open(mine, os.O_RDWR), os.open(other, os.O_RDWR)  # What is said stays there though the other one ends.
os.write(said, b"!")
os.read(heard, 1)
assert all((tensor == i).all() for i, tensor in enumerate(tensors))
print("all", len(tensors))
