"""Gradient descent by hand, a step after every third backward pass."""
import torch

torch.manual_seed(0)
weight = torch.randn(32, 32, requires_grad=True)
for step in range(5):
    for micro in range(3):
        (torch.randn(8, 32) @ weight).square().mean().backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
