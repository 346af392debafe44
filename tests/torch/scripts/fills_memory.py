"""Takes memory until there is none, catches PyTorch's error, and goes on with what it has. An argument names a file that takes
40 MiB of the disk once PyTorch is there."""
import os
import sys

import torch

tensors = [torch.zeros(1)]
for name in sys.argv[1:]:
    with open(name, "wb") as file:
        file.write(bytes(40 << 20))
try:
    while True:
        tensors.append(torch.full((4 << 20,), float(len(tensors))))  # 16 MiB
except torch.OutOfMemoryError as error:
    print("caught after", len(tensors), str(error).splitlines()[0])
for name in sys.argv[1:]:
    disk = os.statvfs(name)
    print("left on the disk:", disk.f_bavail * disk.f_frsize >> 20, "MiB")
del tensors[::2]
assert all((tensor == 2 * i + 1).all() for i, tensor in enumerate(tensors))
print("then", torch.full((4 << 20,), 3.0).sum().item())
