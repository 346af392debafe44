"""Two micro-batches a step, an evaluation after every second step, and something printed after each."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = torch.randn(64, 3, 8, 8)
labels = torch.randint(5, (64,))
for step in range(6):
    total = 0.0
    for micro in range(2):
        part = slice(8 * micro, 8 * micro + 8)
        loss = F.cross_entropy(model(data[part]), labels[part])
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, total)
    if step % 2 == 1:
        model.eval()
        with torch.no_grad():
            right = 0
            for first in range(0, 64, 16):
                right += (model(data[first : first + 16]).argmax(1) == labels[first : first + 16]).sum().item()
        model.train()
        print("right", right)
