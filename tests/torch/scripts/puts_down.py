"""Trains and puts down each step's loss and outputs, in another place each time; prints the losses and hashes of outputs and weights."""

import hashlib

import torch

STEPS = 12
torch.manual_seed(4)
model = torch.nn.Sequential(*(layer for _ in range(12) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
batch = torch.randn(2048, 1024)
losses = torch.zeros(STEPS)
outputs = torch.zeros(STEPS, 512, 1024)
for step in range(STEPS):
    output = model(batch)
    loss = (output - batch).square().mean()
    outputs[step] = output[:512].detach()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses[step] = loss.detach()
    print("step", step, flush=True)
print([loss.hex() for loss in losses.tolist()])
for tensors in ([outputs], model.parameters()):
    print(hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest())
