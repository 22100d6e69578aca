"""Wrong labels as these runs drew them.

`oddly.data.noise` replaces an exact share, from a generator of torch; here every label is replaced
with that probability, from one of NumPy. Other draws would be other figures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

Labels = NDArray[np.int64]
Draw = np.random.Generator | np.random.RandomState


def replace_some(true: Labels, classes: int, rate: float, draw: Draw) -> Labels:
    """Each label with probability `rate` by any of the classes, the true one included."""
    given, hit = true.copy(), draw.random(len(true)) < rate
    integers = draw.integers if isinstance(draw, np.random.Generator) else draw.randint
    given[hit] = integers(0, classes, int(hit.sum()))
    return given


def confuse(true: Labels, called: Mapping[int, int], rate: float, draw: Draw) -> Labels:
    """Each label with probability `rate` by the class that its own is mistaken for, if any."""
    hit = draw.random(len(true)) < rate
    wrong = np.array([called.get(label, label) for label in true.tolist()], np.int64)
    return np.where(hit, wrong, true)


def weak_mistakes(features: Tensor, true: Labels, classes: int, rate: float) -> Labels:
    """What a linear layer that saw 4,000 examples for a while takes them for.

    An example flips with a probability proportional to the share of its softmax (logits halved)
    that lies on other classes, and then gets one of these in proportion; `rate` of all do.
    """
    labels, seed = torch.from_numpy(true), 5
    generator = torch.Generator().manual_seed(seed)
    seen = torch.randperm(len(labels), generator=generator)[:4_000]
    inputs = (features - features.mean(0)) / (features.std(0) + 1e-6) / 10
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layer = torch.nn.Linear(features.shape[1], classes)
    optimiser = torch.optim.Adam(layer.parameters(), 1e-2, weight_decay=1e-3)
    for _ in range(100):
        loss = cross_entropy(layer(inputs[seen]), labels[seen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        likely = (layer(inputs) / 2).softmax(1) * (1 - one_hot(labels, classes))
    doubt = likely.sum(1)
    chance = (doubt * rate / doubt.mean()).clamp(max=0.95)
    flipped = torch.rand(len(labels), generator=generator) < chance
    other = torch.multinomial(likely + 1e-9, 1, generator=generator)[:, 0]
    return torch.where(flipped, other, labels).numpy()
