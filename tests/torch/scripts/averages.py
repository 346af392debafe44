"""averages.py: each step replaces an average of each weight, while the one before lives: their addresses do not repeat."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
layers = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)])
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3, momentum=0.9)
averages = [parameter.detach().clone() for parameter in layers.parameters()]
for step in range(1, 25):
    x = torch.randn(256, 1024)
    loss = (layers(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        averages = [average * 0.9 + parameter * 0.1 for average, parameter in zip(averages, layers.parameters())]
    print("loss", loss.item().hex(), flush=True)
print("averages", sum(average.sum() for average in averages).item().hex())
