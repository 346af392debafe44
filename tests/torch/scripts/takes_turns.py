"""Trains three models of the same shapes in turns, then the first one alone; prints losses and a hash of all weights."""

import hashlib

import torch

torch.manual_seed(7)
ROUNDS, ALONE = 8, 14
models = [torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(6))) for _ in range(3)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9) for model in models]
for step in range(3 * ROUNDS + ALONE):
    turn = step % 3 if step < 3 * ROUNDS else 0
    loss = models[turn](torch.randn(512, 1024)).square().mean()
    loss.backward()
    optimizers[turn].step()
    optimizers[turn].zero_grad()
    print("step", step, loss.item().hex(), flush=True)
weights = [weight.detach().numpy().tobytes() for model in models for weight in model.parameters()]
print(hashlib.sha256(b"".join(weights)).hexdigest())
