"""Saves, prints and looks at the weights after every other step: none of that is a part of an iteration."""

import io

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(net.parameters())
for step in range(8):
    loss = net(torch.randn(8, 32)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2:
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
        print(step, loss.item(), net[0].weight.norm().item(), net[0].weight.t()[0, :4])
