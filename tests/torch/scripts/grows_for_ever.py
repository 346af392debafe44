"""Makes tensors of 1 MiB that it never touches, once it has been told to."""
import sys

import torch

tensors = [torch.empty(1 << 18)]
print("made one", flush=True)
sys.stdin.read()
while True:
    tensors.append(torch.empty(1 << 18))
