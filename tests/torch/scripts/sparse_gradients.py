"""An embedding whose gradient is a sparse tensor."""
import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(1000, 16, sparse=True)
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
rows = torch.arange(64)
for step in range(5):
    optimizer.zero_grad()
    table(rows).pow(2).sum().backward()
    optimizer.step()
torch.vmap(lambda matrix: matrix.to_dense())(torch.eye(4).to_sparse().unsqueeze(0))  # its wrapper is sparse in name only
