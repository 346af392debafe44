"""A process that is forked, and forks, reads tensors that its parent changes meanwhile."""
import os

import torch

torch.set_num_threads(1)  # OpenMP does not survive a fork

tensors = [torch.zeros(1 << 20) for _ in range(64)]
go, ready = os.pipe()
child = os.fork()
if child == 0:
    os.read(go, 1)
    inner = os.fork()
    if inner == 0:
        print("inner", max(tensor.max().item() for tensor in tensors), flush=True)
        os._exit(0)
    os.waitpid(inner, 0)
    print("child", max(tensor.max().item() for tensor in tensors), flush=True)
    os._exit(0)
for tensor in tensors:
    tensor.fill_(1)
os.write(ready, b"x")
os.waitpid(child, 0)
print("parent", min(tensor.min().item() for tensor in tensors), flush=True)
