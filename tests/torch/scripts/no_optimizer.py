"""Gradient descent by hand."""
import torch

torch.manual_seed(0)
weight = torch.randn(32, 32, requires_grad=True)
for step in range(5):
    loss = (torch.randn(8, 32) @ weight).square().mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
        weight.grad.zero_()
