#!/usr/bin/env python3
"""Trains DLRM (Naumov et al. 2019) on random clicks, with the 26 tables of Criteo's Kaggle data, which have 34 million rows: of 16
numbers, as its authors have it, or of 128 and with larger perceptrons, as MLPerf has it. With plain SGD, and in the tables only of the rows
that a step has used. Gradients that are sparse tensors do the same, and the meta device has none. --optimizer is that of the perceptrons."""

import torch
from torch import nn
from torch.nn import functional as F

import training

ROWS = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652, 2173, 4, 7046547,
        18, 15, 286181, 105, 142572)
SIZES = {  # layers of the perceptron before the tables' rows meet, of which the last is as wide as a row, and of that after it
    "kaggle": ((13, 512, 256, 64, 16), (512, 256)),
    "mlperf": ((13, 512, 256, 128), (1024, 1024, 512, 256)),
}


def perceptron(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return layers


class Dlrm(nn.Module):
    def __init__(self, rows, before, after):
        super().__init__()
        width = before[-1]
        self.tables = nn.ParameterList(nn.Parameter(torch.empty(count, width).uniform_(-1, 1), requires_grad=False) for count in rows)
        self.bottom = nn.Sequential(*perceptron(*before))
        vectors = len(rows) + 1
        self.top = nn.Sequential(*perceptron(vectors * (vectors - 1) // 2 + width, *after), nn.Linear(after[-1], 1), nn.Flatten(0))
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, numbers, picked):
        x = self.bottom(numbers)
        y = torch.stack([x, *picked], dim=1)
        products = torch.bmm(y, y.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, products], dim=1))


def main():
    parser = training.parser(__doc__, batch=2048, optimizer="sgd", what="clicks")
    parser.add_argument("--size", choices=SIZES, default="kaggle", help="(default %(default)s)")
    parser.add_argument("--most-rows", type=int, default=max(ROWS), help="no table has more (default: all of their rows)")
    options = parser.parse_args()

    rows = [min(count, options.most_rows) for count in ROWS]
    model = training.built(options, lambda: Dlrm(rows, *SIZES[options.size]))
    optimizer = training.OPTIMIZERS[options.optimizer](weight for weight in model.parameters() if weight.requires_grad)
    rate = optimizer.param_groups[0]["lr"]

    def step():
        numbers = torch.rand(options.batch, SIZES[options.size][0][0], device=options.device)
        words = [torch.randint(count, (options.batch,), device=options.device) for count in rows]
        clicked = torch.randint(2, (options.batch,), device=options.device).float()
        picked = [table[word].requires_grad_() for table, word in zip(model.tables, words)]
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(numbers, picked), clicked)
        loss.backward()
        optimizer.step()
        for table, word, row in zip(model.tables, words, picked):
            table.index_add_(0, word, row.grad, alpha=-rate)
        return loss

    training.repeat(options, model, step)


if __name__ == "__main__":
    main()
