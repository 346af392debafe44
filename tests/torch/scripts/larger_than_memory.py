"""Tensors of 240 MiB in all, used from two threads, from numpy, from files and from training; prints what came of it."""
import hashlib
import os
import tempfile
import threading

import numpy
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)  # Sums must not depend on how many threads there are.
result = hashlib.sha256()
tensors = [torch.randn(1024, 2048) for _ in range(24)]


def sweep(mine, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):
        for tensor in mine:
            tensor.mul_(0.5).add_(torch.randn(tensor.shape, generator=generator))
            tensor[::7].clamp_(min=0)


threads = [threading.Thread(target=sweep, args=(tensors[i::2], i)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for tensor in tensors[:4]:  # numpy on the same bytes
    array = tensor.numpy()
    array += 1
    result.update(numpy.sort(array.ravel())[:: 1 << 16].tobytes())

with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
    path = os.path.join(folder, "all.pt")
    torch.save(tensors, path)
    loaded = torch.load(path)
    assert all(torch.equal(a, b) for a, b in zip(tensors, loaded))
    del loaded
    with open(os.path.join(folder, "raw"), "wb+") as file:  # system calls on tensors' bytes
        for tensor in tensors:
            file.write(memoryview(tensor.numpy()).cast("B"))
        file.seek(0)
        for tensor in reversed(tensors):
            file.readinto(memoryview(tensor.numpy()).cast("B"))

embedding, lstm, head = nn.Embedding(30_000, 256), nn.LSTM(256, 256, batch_first=True), nn.Linear(256, 1000)
parameters = [*embedding.parameters(), *lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters)
for step in range(3):
    tokens = torch.randint(1000, (4, 16))
    hidden, _ = lstm(embedding(tokens))
    loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", float(loss.detach()).hex())

for tensor in [*tensors, *(p.detach() for p in parameters)]:
    result.update(tensor.numpy().tobytes())
print("bytes", result.hexdigest())
