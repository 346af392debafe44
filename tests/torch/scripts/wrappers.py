"""Weights that are wrappers around tensors, as DTensor's and quantized ones are, and gradients by sample through vmap."""

import torch
from torch.utils._pytree import tree_map_only


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        unwrap = lambda tree: tree_map_only(cls, lambda wrapper: wrapper.inner, tree)
        result = operator(*unwrap(args), **unwrap(kwargs or {}))
        writes = operator._schema.name.endswith("_")
        return args[0] if writes else tree_map_only(torch.Tensor, cls, result)


def loss_of(weight, sample):
    return (sample @ weight).square().mean()


torch.manual_seed(0)
wrapped = torch.nn.Parameter(Wrapper(torch.randn(64, 64)))
plain = torch.nn.Parameter(torch.randn(64, 64))
optimizer = torch.optim.SGD([wrapped, plain], lr=0.01, momentum=0.9, foreach=False)
for step in range(6):
    batch = torch.randn(8, 64)
    loss_of(wrapped, batch).backward()
    plain.grad = torch.vmap(torch.func.grad(loss_of), (None, 0))(plain.detach(), batch).mean(0)
    optimizer.step()
    optimizer.zero_grad()
