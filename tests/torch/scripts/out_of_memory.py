"""A tensor that nothing can hold is PyTorch's own error, and the script goes on."""
import torch

try:
    torch.empty(1 << 62, dtype=torch.uint8)
except torch.OutOfMemoryError as error:
    assert isinstance(error, RuntimeError)
    print("caught", str(error).splitlines()[0])
print(torch.ones(3).sum().item())
