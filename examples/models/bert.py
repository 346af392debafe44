#!/usr/bin/env python3
"""Trains BERT (Devlin et al. 2018) on random text: to classify it, as G10 did with CoLA, or to guess masked words, as DeepUM did with
Wikitext. With plain SGD, as G10's traces have it; DeepUM's needs --optimizer adamw."""

import torch

import training

SIZES = {"base": (12, 768, 12), "large": (24, 1024, 16)}  # layers, width, heads
WORDS, MASK = 30522, 103


def main():
    parser = training.parser(__doc__, batch=8, optimizer="sgd")
    parser.add_argument("--size", choices=SIZES, default="base", help="(default %(default)s)")
    parser.add_argument("--task", choices=("cola", "wikitext"), default="cola", help="(default %(default)s)")
    parser.add_argument("--length", type=int, help="words in a text, at most 512 (default 128 for cola, 512 for wikitext)")
    training.attention_option(parser)
    options = parser.parse_args()
    length = options.length or {"cola": 128, "wikitext": 512}[options.task]

    transformers = training.library("transformers")
    layers, width, heads = SIZES[options.size]
    config = transformers.BertConfig(vocab_size=WORDS, num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads,
                                     intermediate_size=4 * width, num_labels=2, attn_implementation=options.attention)
    classes = {"cola": transformers.BertForSequenceClassification, "wikitext": transformers.BertForMaskedLM}
    model = training.built(options, lambda: classes[options.task](config))

    def classify():
        text = torch.randint(1000, WORDS, (options.batch, length), device=options.device)
        labels = torch.randint(2, (options.batch,), device=options.device)
        return model(text, labels=labels).loss

    def guess():
        text = torch.randint(1000, WORDS, (options.batch, length), device=options.device)
        masked = torch.rand(text.shape, device=options.device) < 0.15
        return model(text.masked_fill(masked, MASK), labels=text.masked_fill(~masked, -100)).loss

    training.train(options, model, {"cola": classify, "wikitext": guess}[options.task])


if __name__ == "__main__":
    main()
