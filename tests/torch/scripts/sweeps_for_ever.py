"""Changes tensors of 240 MiB in all, one after the other, and never ends."""
import torch

tensors = [torch.ones(10, 1 << 18) for _ in range(24)]
while True:
    for tensor in tensors:
        tensor.add_(1)
    print("swept", flush=True)
