"""Makes tensors of 1 MiB that it never touches, and says so every 16."""
import torch

tensors = []
while True:
    tensors.append(torch.empty(1 << 18))
    if len(tensors) % 16 == 0:
        print("grown", flush=True)
