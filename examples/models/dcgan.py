#!/usr/bin/env python3
"""Trains DCGAN (Radford et al. 2016) as PyTorch's examples have it, on random images of 64 by 64 pixels: a generator and what it shall
deceive, each with Adam."""

import torch
from torch import nn
from torch.nn import functional as F

import training

NOISE, WIDTH = 100, 64


def up(inputs, outputs, stride=2, padding=1):
    return [nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


def down(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, inplace=True)]


class Dcgan(nn.Module):
    def __init__(self):
        super().__init__()
        w = WIDTH
        self.generator = nn.Sequential(*up(NOISE, 8 * w, 1, 0), *up(8 * w, 4 * w), *up(4 * w, 2 * w), *up(2 * w, w),
                                       nn.ConvTranspose2d(w, 3, 4, 2, 1, bias=False), nn.Tanh())
        self.critic = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True), *down(w, 2 * w), *down(2 * w, 4 * w),
                                    *down(4 * w, 8 * w), nn.Conv2d(8 * w, 1, 4, 1, 0, bias=False), nn.Flatten(0))

    def judge(self, images, truth):
        """How far the critic is from saying 1 for real images, and 0 for made ones."""
        scores = self.critic(images)
        return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, truth))


def main():
    parser = training.parser(__doc__, batch=64, optimizer="adam", what="images")
    options = parser.parse_args()
    model = training.built(options, Dcgan)
    of_critic, of_generator = (training.OPTIMIZERS[options.optimizer](part.parameters()) for part in (model.critic, model.generator))

    def step():
        of_critic.zero_grad()
        real = torch.randn(options.batch, 3, 64, 64, device=options.device)
        loss = model.judge(real, 1.0)
        loss.backward()
        made = model.generator(torch.randn(options.batch, NOISE, 1, 1, device=options.device))
        deceived = model.judge(made.detach(), 0.0)
        deceived.backward()
        of_critic.step()

        of_generator.zero_grad()
        model.judge(made, 1.0).backward()
        of_generator.step()
        return loss + deceived

    training.repeat(options, model, step)


if __name__ == "__main__":
    main()
