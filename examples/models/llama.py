#!/usr/bin/env python3
"""Trains a Llama (Touvron et al. 2023) on random text, with AdamW: the 7b of Llama 2, the 1b and 3b of Llama 3.2, or a tiny one."""

import torch

import training

SIZES = {  # layers, width, heads, heads of keys and values, width of the perceptron, words, whether input and output share their weights
    "tiny": (4, 512, 8, 4, 1376, 4000, True),
    "1b": (16, 2048, 32, 8, 8192, 128256, True),
    "3b": (28, 3072, 24, 8, 8192, 128256, True),
    "7b": (32, 4096, 32, 32, 11008, 32000, False),
}


def main():
    parser = training.parser(__doc__, batch=1)
    parser.add_argument("--size", choices=SIZES, default="7b", help="(default %(default)s)")
    parser.add_argument("--layers", type=int, help="fewer or more than the size has")
    parser.add_argument("--length", type=int, default=2048, help="words in a text (default %(default)s)")
    parser.add_argument("--checkpointing", action="store_true", help="compute each layer again in the backward pass")
    training.attention_option(parser)
    options = parser.parse_args()

    transformers = training.library("transformers")
    layers, width, heads, key_heads, inner, words, tied = SIZES[options.size]
    config = transformers.LlamaConfig(num_hidden_layers=options.layers or layers, hidden_size=width, num_attention_heads=heads,
                                      num_key_value_heads=key_heads, intermediate_size=inner, vocab_size=words, tie_word_embeddings=tied,
                                      max_position_embeddings=options.length, attn_implementation=options.attention)
    model = training.built(options, lambda: transformers.LlamaForCausalLM(config))
    if options.checkpointing:
        model.activation_checkpointing_enable()

    def loss_of():
        text = torch.randint(words, (options.batch, options.length), device=options.device)
        mask = training.causal_mask(options.length, options.device)
        return model(text, labels=text, attention_mask=mask, use_cache=False).loss

    training.train(options, model, loss_of)


if __name__ == "__main__":
    main()
