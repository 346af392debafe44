"""Uses more memory than it has, and ends as its argument says."""
import os
import signal
import sys

import torch

tensors = [torch.ones(16 << 18) for _ in range(10)]  # 160 MiB
print(sum(tensor.sum().item() for tensor in tensors), flush=True)
match sys.argv[1]:
    case "exception":
        raise ValueError("as asked for")
    case "os._exit":
        os._exit(7)
    case "abort":
        os.abort()
    case "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        tensors[0].sum()
    case "kill":
        os.kill(os.getpid(), signal.SIGKILL)
