"""Rows of an embedding that nobody knows beforehand, and oneDNN's LSTM, which writes a workspace without saying so."""
import torch
from torch import nn

torch.manual_seed(0)
embedding, lstm, head = nn.Embedding(100, 16), nn.LSTM(16, 24, num_layers=2, batch_first=True), nn.Linear(24, 100)
parameters = [*embedding.parameters(), *lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters)
for step in range(5):
    tokens = torch.randint(100, (4, 7))
    hidden, _ = lstm(embedding(tokens))
    nn.functional.cross_entropy(head(hidden).flatten(0, 1), tokens.flatten()).backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    optimizer.zero_grad()
