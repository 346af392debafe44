"""holds_memory.py MIB MINE OTHER: makes so many MiB of tensors; says so by a file, MINE, waits until there is OTHER, and then
checks them."""
import os
import sys
import time

import torch

mib, mine, other = int(sys.argv[1]), sys.argv[2], sys.argv[3]
tensors = [torch.full((1 << 20,), float(i)) for i in range(mib // 4)]
open(mine, "x", encoding="utf-8").close()
deadline = time.monotonic() + 120
while not os.path.exists(other):
    assert time.monotonic() < deadline, "the other one has not come so far"
    time.sleep(0.01)
assert all((tensor == i).all() for i, tensor in enumerate(tensors))
print("all", len(tensors))
