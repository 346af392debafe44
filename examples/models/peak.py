"""The most bytes that tensors of one device have at a time. On meta this is found without having them."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
    """`bytes` is the peak so far, of the tensors given and what operators return while this is entered. What an operator takes and frees
    within itself is not seen."""

    def __init__(self, device, tensors):
        super().__init__()
        self.kind = torch.device(device).type
        self.bytes = self.live = 0
        self.known = {}  # memory -> its bytes
        for tensor in tensors:
            self.see(tensor)

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        result = function(*arguments, **(named or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.see(tensor)
        return result

    def see(self, tensor):
        memory = tensor.untyped_storage()
        key = memory._cdata
        if tensor.device.type != self.kind or key in self.known:
            return
        self.known[key] = memory.nbytes()
        self.live += memory.nbytes()
        self.bytes = max(self.bytes, self.live)
        weakref.finalize(memory, self.forget, key)

    def forget(self, key):
        self.live -= self.known.pop(key)
