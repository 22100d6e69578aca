"""Hold out examples with known true labels, for methods that need them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from oddly.data.base import LabelledData, Split
from oddly.data.labels import read_trusted
from oddly.engine.config import RunConfig
from oddly.engine.feed import Feed
from oddly.engine.held_out import rank_in_class
from oddly.engine.sweep import read_features
from oddly.errors import InputError
from oddly.methods import Batch

DEFAULT = 1_000
LARGEST_SHARE = 0.1
FEWEST = 2  # batch normalisation cannot train on a single example
SALT = 0x7257


@dataclass(frozen=True)
class TrustedSplit:
    """The held-out examples: `split.labels` are the true labels, `given_labels` the data's."""

    split: Split
    given_labels: Tensor


def hold_out_trusted(data: LabelledData, config: RunConfig) -> tuple[LabelledData, TrustedSplit]:
    """The data without the trusted examples, and these; the test set is unchanged."""
    asked = config.trusted
    if asked is not None and not str(asked).isdecimal():
        places, true_labels = read_trusted(data, Path(str(asked)))
    else:
        places = choose_trusted(data, config, None if asked is None else int(asked))
        assert data.true_labels is not None
        true_labels = data.true_labels[places]
    if len(places) < FEWEST:
        raise InputError(f"{asked}: {config.method} needs at least {FEWEST} trusted examples")
    rest = data.without(places)
    if not len(rest.train):
        raise InputError("all examples are trusted, so nothing is left to train on")
    trusted = replace(data.train.take(places), labels=true_labels)
    note = f"held out {len(places):,} trusted examples of the {len(data.train):,} to train on"
    smaller = replace(rest, notes=(*data.notes, note))
    return smaller, TrustedSplit(trusted, data.train.labels[places])


def choose_trusted(data: LabelledData, config: RunConfig, number: int | None) -> Tensor:
    """Indices of examples with known labels, with classes as balanced as possible."""
    if data.true_labels is None:
        raise InputError(
            f"{config.method} needs trusted labels, but {data.name} has no true labels; pass"
            " --trusted FILE, a table of ids whose labels you trust"
        )
    most = int(LARGEST_SHARE * len(data.train))
    if number is None:
        number = min(DEFAULT, most)
    if most < FEWEST:
        raise InputError(
            f"{config.method} needs trusted labels, but a tenth of the {len(data.train)} training"
            " examples is too few; pass --trusted FILE, a table of ids whose labels you trust"
        )
    if not FEWEST <= number <= most:
        raise InputError(
            f"--trusted must be within {FEWEST}..{most:,} for {data.name}, a tenth of its"
            f" {len(data.train):,} training examples; got {number}"
        )
    generator = torch.Generator().manual_seed(config.noise_seed + SALT)
    shuffled = torch.randperm(len(data.train), generator=generator)
    # Sorting by the rank within the class takes one example of each class in turn.
    ranks = rank_in_class(data.true_labels[shuffled])
    return shuffled[ranks.argsort(stable=True)[:number]].sort().values


class TrustedFeed:
    """Batches of trusted examples, in an order that depends only on the epoch."""

    def __init__(self, feed: Feed, given_labels: Tensor, bf16: bool) -> None:
        self.feed, self.bf16 = feed, bf16
        self.labels, self.given_labels = feed.labels, given_labels.to(feed.device)
        self.set_epoch(0)

    @classmethod
    def of(cls, trusted: TrustedSplit, like: Feed, bf16: bool) -> TrustedFeed:
        return cls(replace(like, split=trusted.split), trusted.given_labels, bf16)

    def __len__(self) -> int:
        return len(self.labels)

    def set_epoch(self, seed: int) -> None:
        self._order = torch.Generator().manual_seed(seed + SALT)
        self._augment = torch.Generator(self.feed.device).manual_seed(seed + 2 * SALT)

    def draw(self, size: int) -> Batch:
        """A random batch without repetition, augmented as in training."""
        order = torch.randperm(len(self), generator=self._order)[:size]
        index, (inputs, *_), labels = self.feed.batch(order, self._augment)
        return Batch(index, inputs, labels)

    def features(self, model: nn.Module) -> Tensor:
        return read_features(model, feed=self.feed, bf16=self.bf16)
