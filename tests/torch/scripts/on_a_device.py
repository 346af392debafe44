"""on_a_device.py MODEL [--device DEVICE] [--steps N] [--width N]: trains a small model there and prints its losses, a hash of its
weights, and the most memory that the device had allocated. What is random but dropout is drawn on the host, the same for all devices."""

import argparse
import hashlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def perceptron(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Gan:
    """A generator and a critic, each with an optimizer of its own, in turns."""

    def __init__(self, width):
        self.width = width
        self.generator = perceptron(width // 4, width, width, width, width // 2)
        self.critic = perceptron(width // 2, width, width, 1)
        self.modules = [self.generator, self.critic]

    def prepare(self):
        self.optimizers = [torch.optim.Adam(module.parameters(), lr=2e-4, betas=(0.5, 0.999)) for module in self.modules]

    def step(self, put):
        of_generator, of_critic = self.optimizers
        real, noise = put(torch.randn(32, self.width // 2)), put(torch.randn(32, self.width // 4))
        ones, zeros = torch.ones(32, 1, device=real.device), torch.zeros(32, 1, device=real.device)
        fake = self.generator(noise)
        of_critic.zero_grad()
        critics = F.binary_cross_entropy_with_logits(self.critic(real), ones)
        critics = critics + F.binary_cross_entropy_with_logits(self.critic(fake.detach()), zeros)
        critics.backward()
        of_critic.step()
        of_generator.zero_grad()
        generators = F.binary_cross_entropy_with_logits(self.critic(fake), ones)
        generators.backward()
        of_generator.step()
        return critics, generators


class Model:
    """One loss, one optimizer; some number of backward passes a step."""

    optimizer, parts = torch.optim.AdamW, 1

    def prepare(self):
        self.of_all = self.optimizer([p for module in self.modules for p in module.parameters()], lr=1e-3)

    def step(self, put):
        losses = []
        for _ in range(self.parts):
            loss = self.loss(put) / self.parts
            loss.backward()
            losses.append(loss.detach())
        nn.utils.clip_grad_norm_([p for module in self.modules for p in module.parameters()], 1.0)
        self.of_all.step()
        self.of_all.zero_grad()
        return losses


class Lstm(Model):
    """Embeds words, reads them with two layers, says the next one."""

    def __init__(self, width):
        self.words = 2000
        self.embedding, self.lstm = nn.Embedding(self.words, width), nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, self.words)
        self.modules = [self.embedding, self.lstm, self.head]

    def loss(self, put):
        words = put(torch.randint(self.words, (8, 17)))
        hidden, _ = self.lstm(self.embedding(words[:, :-1]))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), words[:, 1:].flatten())


class Accumulation(Model):
    """Four micro-batches a step through convolutions and batch normalisation."""

    parts = 4

    @staticmethod
    def optimizer(parameters, lr):
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9)

    def __init__(self, width):
        channels = width // 8
        layers = []
        for inputs in (3, channels, channels, channels):
            layers += [nn.Conv2d(inputs, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
        self.net = nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(channels * 64, 100))
        self.modules = [self.net]

    def loss(self, put):
        images, labels = put(torch.randn(8, 3, 16, 16)), put(torch.randint(100, (8,)))
        return F.cross_entropy(self.net(images), labels)


class Checkpointing(Model):
    """The forward pass of each part is computed again in the backward pass, with the dropout of the first time."""

    def __init__(self, width):
        self.width = width
        self.body = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1)) for _ in range(6))
        self.modules = [self.body]

    def loss(self, put):
        x = put(torch.randn(32, self.width))
        for part in self.body:
            x = x + checkpoint(part, x, use_reentrant=False)
        return x.square().mean()


class Attention(Model):
    """Two layers of PyTorch's own encoder, in training mode."""

    def __init__(self, width):
        self.words = 500
        self.embedding = nn.Embedding(self.words, width)
        layer = nn.TransformerEncoderLayer(width, nhead=8, dim_feedforward=2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, self.words)
        self.modules = [self.embedding, self.encoder, self.head]

    def loss(self, put):
        words = put(torch.randint(self.words, (4, 32)))
        return F.cross_entropy(self.head(self.encoder(self.embedding(words))).flatten(0, 1), words.flatten())


class Streams(Model):
    """The inputs are made on a second stream, beside the step before."""

    def __init__(self, width):
        self.width = width
        self.net = perceptron(width, width, width, width)
        self.modules = [self.net]
        self.side, self.coming = None, None

    def make(self, put):
        self.side.wait_stream(torch.accelerator.current_stream())
        with self.side:
            x = put(torch.randn(32, self.width))
            x = (x * 2).tanh() + x.flip(0)
        return x, self.side.record_event()

    def loss(self, put):
        if self.side is None:
            self.side = torch.Stream(device=next(self.net.parameters()).device)
            self.coming = self.make(put)
        (x, made), self.coming = self.coming, self.make(put)
        stream = torch.accelerator.current_stream()
        stream.wait_event(made)
        x.record_stream(stream)
        return self.net(x).square().mean()


MODELS = {kind.__name__.lower(): kind for kind in (Gan, Lstm, Accumulation, Checkpointing, Attention, Streams)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.ones(1).sqrt()  # Where two threads are its first callers, MKL may take a coarse one in one of them (pytorch/pytorch#188792).
    model = MODELS[options.model](options.width)
    for module in model.modules:
        module.to(options.device)
    model.prepare()
    for step in range(options.steps):
        print("step", step, *(loss.item().hex() for loss in model.step(lambda tensor: tensor.to(options.device))), flush=True)
    digest = hashlib.sha256()
    for module in model.modules:
        for tensor in module.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    print("weights", digest.hexdigest(), flush=True)
    if options.device != "cpu":
        print("peak", getattr(torch, torch.device(options.device).type).max_memory_allocated(), flush=True)


if __name__ == "__main__":
    main()
