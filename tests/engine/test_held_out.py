"""A test set out of the training examples, for data that bring none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from oddly.data import synthetic
from oddly.data.base import LabelledData
from oddly.engine.build import build, prepare_data
from oddly.engine.config import RunConfig
from oddly.engine.held_out import choose_evenly, hold_out_test, rank_in_class
from oddly.errors import InputError

CONFIG = RunConfig("synthetic", hold_out=0.1)


@pytest.fixture
def untested() -> LabelledData:
    return replace(synthetic(), test=None, true_labels=None)


def test_a_tenth_of_every_class_leaves_the_training_set(untested: LabelledData) -> None:
    held = hold_out_test(untested, CONFIG)
    assert held.test is not None and len(held.test) == 12 and len(held.train) == 108
    assert not set(held.test.ids) & set(held.train.ids)
    assert set(held.test.ids) | set(held.train.ids) == set(untested.train.ids)
    sizes = Counter(untested.train.labels.tolist())
    for k, number in Counter(held.test.labels.tolist()).items():
        assert abs(number - sizes[k] / 10) <= 1
    given = dict(zip(untested.train.ids, untested.train.labels.tolist(), strict=True))
    assert [given[name] for name in held.test.ids] == held.test.labels.tolist()


def test_classes_give_by_their_size_and_a_single_example_stays() -> None:
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 9 + [3])
    chosen = choose_evenly(labels, 10)
    assert Counter(labels[chosen].tolist()) == {0: 6, 1: 3, 2: 1}
    assert rank_in_class(torch.tensor([4, 7, 4, 4, 7])).tolist() == [0, 0, 1, 2, 1]


def test_all_seeds_and_methods_test_on_the_same_as_it_was_given(untested: LabelledData) -> None:
    configs = [
        replace(CONFIG, noise=0.5, noise_seed=1, order_seed=1),
        replace(CONFIG, noise=0.5, noise_seed=2, method="elr"),
    ]
    one, other = (prepare_data(config, untested) for config in configs)
    assert one.test is not None and other.test is not None
    assert one.test.ids == other.test.ids
    assert torch.equal(one.test.labels, other.test.labels)  # noise comes after
    assert not torch.equal(one.train.labels, other.train.labels)
    assert torch.equal(one.test.labels, hold_out_test(untested, CONFIG).test.labels)  # type: ignore[union-attr]


def test_it_is_what_is_tested_on(untested: LabelledData) -> None:
    parts = build(CONFIG, untested)
    assert parts.test_feed is not None and len(parts.test_feed.split) == 12
    assert parts.context.num_examples == 108


def test_trusted_examples_are_not_tested_on(untested: LabelledData, tmp_path: Path) -> None:
    trusted = hold_out_test(untested, CONFIG).test
    assert trusted is not None
    (tmp_path / "trusted.csv").write_text("id\n" + "\n".join(trusted.ids))
    config = replace(CONFIG, method="ren", trusted=str(tmp_path / "trusted.csv"))
    parts = build(config, untested)
    assert parts.context.trusted is not None and len(parts.context.trusted) == 12
    assert parts.data.test is not None and not set(parts.data.test.ids) & set(trusted.ids)
    assert len(parts.data.test) == 11 and len(parts.data.train) == 97  # a tenth of the other 108


def test_what_cannot_be_held_out(untested: LabelledData) -> None:
    with pytest.raises(InputError, match="has a test set: hold_out is for data without one"):
        build(CONFIG)
    few = untested.take(torch.arange(4))
    with pytest.raises(InputError, match="4 examples are too few to hold 0.1 of them out"):
        hold_out_test(few, CONFIG)
    with pytest.raises(InputError, match="hold_out must be within 0..0.5, got 0.6"):
        RunConfig("photos", hold_out=0.6)
