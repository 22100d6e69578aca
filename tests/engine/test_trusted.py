"""Trusted examples: held out of the training set, never out of the test set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from oddly.data import synthetic
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.errors import InputError
from oddly.methods import METHODS, Batch, Method, StepOutput


@dataclass
class Needy(Method):
    """Needs trusted labels and does nothing with them."""

    needs_trusted_labels: ClassVar[bool] = True

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        return StepOutput(F.cross_entropy(model(batch.inputs), batch.labels))


NOISY = RunConfig("synthetic", method="needy", noise=0.5)


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "needy", Needy)


def test_a_tenth_by_default_of_every_class_alike() -> None:
    parts = build(NOISY)
    trusted = parts.context.trusted
    assert trusted is not None and len(trusted) == 12 and parts.context.num_examples == 108
    assert parts.test_feed is not None and len(parts.test_feed.split) == 60
    assert Counter(trusted.labels.tolist()) == {0: 4, 1: 4, 2: 4}
    assert "held out 12 trusted examples of the 120 to train on" in parts.notes
    held = dict(zip(parts.trusted_feed.feed.split.ids, trusted.labels.tolist(), strict=True))  # type: ignore[union-attr]
    whole = build(replace(NOISY, method="erm")).data
    assert set(parts.data.train.ids) | set(held) == set(whole.train.ids)
    assert not set(parts.data.train.ids) & set(held)
    assert whole.true_labels is not None
    truth = dict(zip(whole.train.ids, whole.true_labels.tolist(), strict=True))
    given = dict(zip(whole.train.ids, whole.train.labels.tolist(), strict=True))
    assert all(truth[name] == label for name, label in held.items())
    assert [given[name] for name in held] == trusted.given_labels.tolist()
    assert held != {name: given[name] for name in held}  # half of the given ones are noise


def test_batches_follow_from_the_epoch() -> None:
    feed = build(replace(NOISY, trusted=9)).trusted_feed
    assert feed is not None and len(feed) == 9
    drawn = []
    for seed in (5, 5, 6):
        feed.set_epoch(seed)
        drawn.append(torch.cat([feed.draw(4).index, feed.draw(4).index]))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    batch = feed.draw(50)
    assert sorted(batch.index.tolist()) == list(range(9)) and batch.inputs.shape == (9, 3, 8, 8)
    assert torch.equal(batch.labels, feed.labels[batch.index])
    assert feed.features(build(NOISY).model).shape == (9, 64)
    assert feed.feed.batch_size == 32  # whatever was drawn: sweeps go by it


def test_ids_that_the_user_vouches_for(tmp_path: Path) -> None:
    table = tmp_path / "trusted.csv"
    table.write_text("id\ntrain/00003\ntrain/00001\n")
    parts = build(replace(NOISY, trusted=str(table)))
    assert parts.trusted_feed is not None
    assert parts.trusted_feed.feed.split.ids == ["train/00003", "train/00001"]
    assert torch.equal(parts.trusted_feed.labels, parts.trusted_feed.given_labels)
    table.write_text("id,label\ntrain/00003,class 2\ntrain/00001,0\n")
    assert build(replace(NOISY, trusted=str(table))).trusted_feed.labels.tolist() == [2, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("trusted", "message"),
    [
        (13, "--trusted must be within 2..12 for synthetic, a tenth of its 120 training examples"),
        ("0", "must be within 2..12"),
        ("nowhere.csv", "trusted: nowhere.csv does not exist"),
    ],
)
def test_what_cannot_be_trusted(trusted: int | str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build(replace(NOISY, trusted=trusted))
    assert message in str(caught.value)


def test_with_neither_true_labels_nor_a_file() -> None:
    data = replace(synthetic(), true_labels=None)
    with pytest.raises(InputError, match=r"needy needs trusted labels.*pass --trusted FILE"):
        build(RunConfig("mine", method="needy"), data)
    with pytest.raises(InputError, match="a tenth of the 9 training examples is too few"):
        build(NOISY, synthetic(per_class=3))


def test_others_keep_all_examples() -> None:
    parts = build(replace(NOISY, method="erm", trusted=5))
    assert parts.context.trusted is None and parts.context.num_examples == 120
