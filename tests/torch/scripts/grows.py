"""After some steps every batch is so much larger that memory becomes short."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(16)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(36):
    batch = torch.randn(128 if step < 18 else 2048, 256)
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print("step", step, float(loss).hex())
