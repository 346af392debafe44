"""Reads gradients long after the optimizer's step now and then, when they only wait to be freed; with 'zeroes', they are never freed."""

import hashlib
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(16)])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x = torch.randn(64, 1024)


def digest(tensors):
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()


for step in range(14):
    loss = model(x).square().mean()
    optimizer.zero_grad(set_to_none="zeroes" not in sys.argv)
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex(), flush=True)
    if step % 4 == 3:
        print("norm", torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item().hex(), flush=True)
    if step % 5 == 4:
        print("gradients", digest(parameter.grad for parameter in model.parameters()), flush=True)
print("weights", digest(model.parameters()))
