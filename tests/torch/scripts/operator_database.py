"""Runs the sample inputs of PyTorch's own operator database, forward and backward, while other tensors push everything out of a small
memory; prints of each operator a hash of all results, how many of them are errors, and how many there are.

    python3 operator_database.py PART PARTS     every PARTSth operator, from the PARTth on
"""

import hashlib
import sys
import warnings

import torch

warnings.simplefilter("ignore")
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

# Their results are whatever was in the memory.
NOT_WRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_")
MOST_SAMPLES = 12


def tensors_in(values):
    return [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]


def bytes_of(tensor):
    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        return bytes_of(tensor.to_dense())
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))  # Neither conjugated nor with strides.
    return repr((tensor.dtype, tuple(tensor.shape))).encode() + flat.view(torch.uint8).numpy().tobytes()


def outcome_of(call):
    """What it returns, or the name of its error."""
    try:
        return call()
    except Exception as error:  # Samples may be wrong for a dtype; that must be so in each run.
        return type(error).__name__


def gradients(result, inputs):
    outputs = [one for one in tensors_in(result) if one.requires_grad]
    if not outputs or not inputs:
        return None
    ones = [torch.ones_like(one) for one in outputs]
    return torch.autograd.grad(outputs, inputs, ones, allow_unused=True)


def digest_of(values):
    digest = hashlib.sha256()
    for one in tree_leaves(values):
        digest.update(bytes_of(one) if isinstance(one, torch.Tensor) else repr(one).encode())
    return digest.hexdigest()[:16]


def results_of(op, push_out):
    dtype = torch.float32 if torch.float32 in op.dtypes else sorted(op.dtypes, key=str)[0]
    torch.manual_seed(0)
    with_gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=with_gradients))[:MOST_SAMPLES]
    push_out()
    results = []
    for number, sample in enumerate(samples):
        torch.manual_seed(number)
        results.append(outcome_of(lambda: op(sample.input, *sample.args, **sample.kwargs)))
    push_out()
    for number, sample in enumerate(samples):
        inputs = [one for one in tensors_in((sample.input, sample.args, sample.kwargs)) if one.requires_grad]
        torch.manual_seed(number)
        results.append(outcome_of(lambda: gradients(results[number], inputs)))
    push_out()
    errors = sum(isinstance(one, str) for one in results)
    return f"{digest_of(results)} {errors} {len(results)}"


def main():
    part, parts = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)  # Sums of several threads may come in any order.
    ballast = [torch.zeros(2 << 20) for _ in range(10)]  # 80 MiB

    def push_out():
        for one in ballast:
            one[::1024] += 1
    for op in op_db[part::parts]:
        if op.dtypes and op.name not in NOT_WRITTEN:
            print(op.full_name, results_of(op, push_out), flush=True)


if __name__ == "__main__":
    main()
