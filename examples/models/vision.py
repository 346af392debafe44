#!/usr/bin/env python3
"""Trains a convolutional network on random images. Each has the optimizer of the paper that used it: G10 plain SGD, DeepUM SGD with
momentum, TENSILE Adam."""

import torch
from torch.nn import functional as F

import training

MODELS = {  # library, the model's name there, pixels an image is wide and high, optimizer
    "vgg16": ("torchvision", "vgg16", 224, "adam"),
    "resnet50": ("torchvision", "resnet50", 224, "adam"),
    "resnet152": ("torchvision", "resnet152", 224, "sgd"),
    "resnet200": ("timm", "resnet200", 224, "momentum"),
    "senet154": ("timm", "legacy_senet154", 224, "sgd"),
    "densenet121": ("torchvision", "densenet121", 224, "adam"),
    "inception_v3": ("torchvision", "inception_v3", 299, "sgd"),
    "inception_v4": ("timm", "inception_v4", 299, "adam"),
    "mobilenet": ("timm", "mobilenetv1_100", 224, "momentum"),
}


def make(name, classes):
    library, model, *_ = MODELS[name]
    if library == "timm":
        return training.library("timm").create_model(model, num_classes=classes)
    more = {"init_weights": False} if name == "inception_v3" else {}  # Its own way to draw them takes minutes.
    return training.library("torchvision").models.get_model(model, weights=None, num_classes=classes, **more)


def main():
    parser = training.parser(__doc__, batch=8, optimizer=None, what="images")
    parser.add_argument("--model", choices=MODELS, default="resnet152", help="(default %(default)s)")
    parser.add_argument("--size", type=int, help="pixels an image is wide and high (default 224, of an Inception 299)")
    parser.add_argument("--classes", type=int, default=1000, help="(default %(default)s)")
    options = parser.parse_args()
    *_, size, optimizer = MODELS[options.model]
    size = options.size or size
    options.optimizer = options.optimizer or optimizer

    model = training.built(options, lambda: make(options.model, options.classes))

    def loss_of():
        images = torch.randn(options.batch, 3, size, size, device=options.device)
        labels = torch.randint(options.classes, (options.batch,), device=options.device)
        scores = model(images)
        if options.model == "inception_v3":  # It guesses half-way, too.
            return F.cross_entropy(scores.logits, labels) + 0.4 * F.cross_entropy(scores.aux_logits, labels)
        return F.cross_entropy(scores, labels)

    training.train(options, model, loss_of)


if __name__ == "__main__":
    main()
