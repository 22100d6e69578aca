"""Who stays and who goes: the edge, the unseen, the spared and the refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from oddly.core import Counterfactual, Verdict, judge
from oddly.errors import InputError

NAN = math.nan
# 0, 1, …, 10: its p-th percentile is p / 10.
COUNTERFACTUAL = Counterfactual.from_losses(torch.arange(11.0), "weights")


def make(losses: list[float], labels: list[int], **options: Any) -> Verdict:
    """Judged at threshold 5, by default between two classes."""
    options = {"percentile": 50.0, "epoch": 3, "num_classes": 2, **options}
    return judge(torch.tensor(losses), torch.tensor(labels), COUNTERFACTUAL, **options)


def big(*losses: float) -> list[float]:
    """`losses`, after five examples of small loss: a class large enough to judge."""
    return [0.0] * 5 + list(losses)


def test_keeps_what_lies_below_the_threshold() -> None:
    verdict = make(big(4.99, 5.01, 9.0), [0] * 8)
    assert verdict.threshold == 5.0
    assert verdict.keep.tolist() == [True] * 6 + [False] * 2
    assert verdict.removed_fraction == pytest.approx(2 / 8)
    assert verdict.spared_classes == ()
    assert (verdict.percentile, verdict.epoch) == (50.0, 3)


def test_a_loss_equal_to_the_threshold_is_removed() -> None:
    assert make(big(5.0), [0] * 6).keep.tolist() == [True] * 5 + [False]


def test_an_example_never_seen_is_kept() -> None:
    verdict = make(big(NAN, 9.0), [0] * 5 + [-1, 0])
    assert verdict.keep.tolist() == [True] * 6 + [False]


def test_removed_are_ordered_most_suspicious_first() -> None:
    verdict = make(big(6.0, 9.0, 7.0), [0] * 8)
    assert verdict.removed.tolist() == [6, 7, 5]


def test_nothing_removed() -> None:
    verdict = make(big(), [0] * 5)
    assert verdict.removed.tolist() == []
    assert verdict.removed_fraction == 0.0


def test_removing_everything_is_refused() -> None:
    message = r"would remove all 6 examples: .*threshold 5\.000 \(percentile 50\); train longer"
    with pytest.raises(InputError, match=message):
        make([6.0] * 6, [0, 0, 0, 1, 1, 1])


def test_removing_everything_that_was_seen_is_refused() -> None:
    """One example left out by drop_last must not turn the refusal into 'all classes spared'."""
    with pytest.raises(InputError, match="would remove all"):
        make([6.0] * 10 + [NAN], [0] * 5 + [1] * 5 + [-1])


def test_a_tiny_class_is_kept_whole_and_named() -> None:
    """Class 1 has four examples, one of them above the threshold."""
    verdict = make(big(9.0) + [0.0, 0.0, 0.0, 9.0], [0] * 6 + [1] * 4)
    assert verdict.keep.tolist() == [True] * 5 + [False] + [True] * 4
    assert verdict.spared_classes == (1,)


def test_a_tiny_class_that_loses_nothing_is_not_mentioned() -> None:
    verdict = make(big(9.0) + [0.0], [0] * 6 + [1])
    assert verdict.spared_classes == ()


def test_five_examples_are_enough_to_be_judged() -> None:
    verdict = make(big() + [0.0, 0.0, 0.0, 0.0, 9.0], [0] * 5 + [1] * 5)
    assert verdict.keep.tolist() == [True] * 9 + [False]
    assert verdict.spared_classes == ()


def test_a_class_that_would_be_emptied_is_kept_whole_and_named() -> None:
    verdict = make(big(9.0) + [9.0] * 7, [0] * 6 + [1] * 7)
    assert verdict.keep.tolist() == [True] * 5 + [False] + [True] * 7
    assert verdict.spared_classes == (1,)


def test_sparing_one_class_leaves_examples_without_a_label_alone() -> None:
    """Label -1 (unknown) must not be mistaken for the last class."""
    verdict = make(big(9.0) + [9.0] * 6, [0] * 5 + [-1] + [1] * 6)
    assert verdict.spared_classes == (1,)
    assert verdict.keep.tolist() == [True] * 5 + [False] + [True] * 6


@pytest.mark.parametrize(
    ("losses", "labels", "named"),
    [(big() + [9.0], [0] * 5 + [1], r"\[1\]"), ([9.0] * 6 + big(), [0] * 6 + [1] * 5, r"\[0\]")],
)
def test_strict_raises_and_names_the_classes(
    losses: list[float], labels: list[int], named: str
) -> None:
    with pytest.raises(InputError, match=rf"empty or touch classes .*{named} \(strict\)"):
        make(losses, labels, strict=True)


def test_strict_lets_an_ordinary_verdict_pass() -> None:
    assert make(big(9.0), [0] * 6, strict=True).removed.tolist() == [5]


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_label_types(dtype: torch.dtype) -> None:
    losses = torch.tensor(big(9.0) + [9.0])
    labels = torch.tensor([0] * 6 + [1], dtype=dtype)
    verdict = judge(losses, labels, COUNTERFACTUAL, 50.0, 1, num_classes=2)
    assert verdict.removed.tolist() == [5]
    assert verdict.spared_classes == (1,)


def test_to_pandas() -> None:
    pytest.importorskip("pandas")
    table = make(big(7.0, NAN), [0] * 6 + [-1]).to_pandas()
    assert list(table.columns) == [
        "index",
        "given_label",
        "loss",
        "score",
        "counterfactual_percentile",
        "threshold",
        "keep",
    ]
    assert table["index"].tolist() == list(range(7))
    assert table["given_label"].tolist() == [0] * 6 + [-1]
    assert table["keep"].tolist() == [True] * 5 + [False, True]
    assert table["threshold"].unique().tolist() == [5.0]
    row = table.iloc[5]
    assert row["loss"] == row["score"] == 7.0
    assert row["counterfactual_percentile"] == pytest.approx(100 * 7 / 11)
    assert table.iloc[6][["loss", "counterfactual_percentile"]].isna().all()


def test_told_in_one_line() -> None:
    assert str(make(big(9.0), [0] * 6)) == (
        "epoch 3: 1 of 6 examples removed (16.7 %), loss ≥ 5.000"
        " (percentile 50 of the counterfactual)"
    )
