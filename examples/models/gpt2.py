#!/usr/bin/env python3
"""Trains GPT-2 (Radford et al. 2019) on random text, with AdamW: DeepUM trained the sizes large and xl on Wikitext."""

import torch

import training

SIZES = {"small": (12, 768, 12), "medium": (24, 1024, 16), "large": (36, 1280, 20), "xl": (48, 1600, 25)}  # layers, width, heads


def main():
    parser = training.parser(__doc__, batch=1)
    parser.add_argument("--size", choices=SIZES, default="small", help="(default %(default)s)")
    parser.add_argument("--length", type=int, default=1024, help="words in a text, at most 1024 (default %(default)s)")
    training.attention_option(parser)
    options = parser.parse_args()

    transformers = training.library("transformers")
    layers, width, heads = SIZES[options.size]
    config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads, attn_implementation=options.attention)
    model = training.built(options, lambda: transformers.GPT2LMHeadModel(config))
    model.loss_type = "ForCausalLM"  # transformers does not guess it from the class's name, and warns.

    def loss_of():
        text = torch.randint(config.vocab_size, (options.batch, options.length), device=options.device)
        mask = training.causal_mask(options.length, options.device)
        return model(text, labels=text, attention_mask=mask, use_cache=False).loss

    training.train(options, model, loss_of)


if __name__ == "__main__":
    main()
