#!/usr/bin/env python3
"""Trains a vision transformer (Dosovitskiy et al. 2021) on random images: ViT-B/16, or ViT-S/32, which is what G10's trace holds. With
plain SGD, as there."""

import torch
from torch.nn import functional as F

import training

MODELS = {"b16": "vit_base_patch16_224", "s32": "vit_small_patch32_224"}


def main():
    parser = training.parser(__doc__, batch=8, optimizer="sgd", what="images")
    parser.add_argument("--model", choices=MODELS, default="b16", help="(default %(default)s)")
    parser.add_argument("--size", type=int, default=224, help="pixels an image is wide and high (default %(default)s)")
    parser.add_argument("--classes", type=int, default=1000, help="(default %(default)s)")
    training.attention_option(parser)
    options = parser.parse_args()

    timm = training.library("timm")
    timm.layers.set_fused_attn(options.attention == "sdpa")
    model = training.built(options, lambda: timm.create_model(MODELS[options.model], img_size=options.size, num_classes=options.classes))

    def loss_of():
        images = torch.randn(options.batch, 3, options.size, options.size, device=options.device)
        labels = torch.randint(options.classes, (options.batch,), device=options.device)
        return F.cross_entropy(model(images), labels)

    training.train(options, model, loss_of)


if __name__ == "__main__":
    main()
