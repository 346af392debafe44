"""A DataLoader over tensors in memory: workers that are forked, forked with shared memory, spawned."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    context, shared = sys.argv[1], "shared" in sys.argv
    data = torch.arange(4096.0).reshape(64, 64)
    if shared:
        data.share_memory_()
    total = 0.0
    for (batch,) in DataLoader(TensorDataset(data), batch_size=16, num_workers=1, multiprocessing_context=context):
        total += batch.sum().item()
    print("total", total)
