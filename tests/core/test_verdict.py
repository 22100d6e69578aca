"""Who stays and who goes: the edge, the unseen, the spared and the refused."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from oddly.core import Counterfactual, Verdict, judge
from oddly.core.sentinels import correct_percentile
from oddly.errors import InputError

NAN = math.nan
# 0, 1, …, 10: its p-th percentile is p / 10.
COUNTERFACTUAL = Counterfactual.from_losses(torch.arange(11.0), "weights")


def make(scores: list[float], labels: list[int], **options: Any) -> Verdict:
    """Judged by score at threshold 5, by default between two classes; losses are 100 larger."""
    options = {"percentile": 50.0, "epoch": 3, "num_classes": 2, **options}
    suspicion = torch.tensor(scores)
    return judge(suspicion, suspicion + 100, torch.tensor(labels), COUNTERFACTUAL, **options)


def big(*scores: float) -> list[float]:
    """`scores`, after five examples of small score: a class large enough to judge."""
    return [0.0] * 5 + list(scores)


def test_keeps_what_lies_below_the_threshold() -> None:
    verdict = make(big(4.99, 5.01, 9.0), [0] * 8)
    assert verdict.threshold == 5.0
    assert verdict.keep.tolist() == [True] * 6 + [False] * 2
    assert verdict.removed_fraction == pytest.approx(2 / 8)
    assert verdict.spared_classes == ()
    assert (verdict.percentile, verdict.epoch) == (50.0, 3)


def test_a_score_equal_to_the_threshold_is_removed() -> None:
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
    ("scores", "labels", "named"),
    [(big() + [9.0], [0] * 5 + [1], r"\[1\]"), ([9.0] * 6 + big(), [0] * 6 + [1] * 5, r"\[0\]")],
)
def test_strict_raises_and_names_the_classes(
    scores: list[float], labels: list[int], named: str
) -> None:
    with pytest.raises(InputError, match=rf"empty or touch classes .*{named} \(strict\)"):
        make(scores, labels, strict=True)


def test_strict_lets_an_ordinary_verdict_pass() -> None:
    assert make(big(9.0), [0] * 6, strict=True).removed.tolist() == [5]


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_label_types(dtype: torch.dtype) -> None:
    scores = torch.tensor(big(9.0) + [9.0])
    labels = torch.tensor([0] * 6 + [1], dtype=dtype)
    verdict = judge(scores, scores, labels, COUNTERFACTUAL, 50.0, 1, num_classes=2)
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
    assert (row["score"], row["loss"]) == (7.0, 107.0)
    assert row["counterfactual_percentile"] == pytest.approx(100 * 7 / 11)
    assert table.iloc[6][["loss", "score", "counterfactual_percentile"]].isna().all()


def test_told_in_one_line() -> None:
    assert str(make(big(9.0), [0] * 6)) == (
        "epoch 3: 1 of 6 examples removed (16.7 %), score ≥ 5.000 (percentile 50, weights)"
    )


def test_state_goes_through_a_file() -> None:
    saved = replace(make(big(9.0, NAN), [0] * 6 + [-1]), noise_rate=(0.2, 0.1, 0.3))
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    loaded = Verdict.from_state(torch.load(file, weights_only=True))
    assert torch.equal(loaded.scores.nan_to_num(-1), saved.scores.nan_to_num(-1))
    assert torch.equal(loaded.counterfactual.losses, saved.counterfactual.losses)
    assert loaded.counterfactual.source == saved.counterfactual.source
    for name in ("threshold", "percentile", "epoch", "noise_rate", "spared_classes"):
        assert getattr(loaded, name) == getattr(saved, name)
        assert type(getattr(loaded, name)) is type(getattr(saved, name))
    for name in ("keep", "losses", "labels"):
        assert torch.equal(
            getattr(loaded, name).nan_to_num(-1), getattr(saved, name).nan_to_num(-1)
        )
    assert str(loaded) == repr(loaded) == str(saved)


def judge_mixture(
    noise: float, num_classes: int, percentile: float = 6.0, apart: float = 6.0
) -> tuple[Verdict, Tensor]:
    """40,000 examples and 4,000 sentinels, margins -3 ± 1 if right and `apart` more if wrong.

    Of the sentinels on wrong labels one in K - 1 hit the true one: they score like right ones.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(wrong: Tensor) -> Tensor:
        return apart * wrong - 3 + torch.randn(len(wrong), generator=generator)

    wrong = torch.rand(40_000, generator=generator) < noise
    hit = torch.rand(4_000, generator=generator) < noise / (num_classes - 1)
    scores, sentinels = draw(wrong), Counterfactual.from_losses(draw(~hit), "sentinels")
    labels = torch.arange(40_000) % num_classes
    verdict = judge(scores, scores, labels, sentinels, percentile, 5, num_classes)
    return verdict, wrong


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2, 0.4])
def test_the_noise_rate_of_a_mixture(noise: float, num_classes: int) -> None:
    verdict, _ = judge_mixture(noise, num_classes)
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    assert rate == pytest.approx(noise, abs=0.03)
    assert low <= rate <= high


def f1(flagged: Tensor, wrong: Tensor) -> float:
    return 2 * int((flagged & wrong).sum()) / int(flagged.sum() + wrong.sum())


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_where_right_and_wrong_lie_apart_the_cut_is_between_them(
    noise: float, num_classes: int
) -> None:
    """With 40 % noise and three classes, a fifth of the sentinels score like right labels."""
    verdict, wrong = judge_mixture(noise, num_classes)
    assert -2 < verdict.threshold < 2
    assert f1(~verdict.keep, wrong) > 0.97


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize(("noise", "apart"), [(0.1, 3.0), (0.2, 2.5), (0.3, 2.0)])
def test_noise_rate_and_threshold_agree_also_where_right_and_wrong_overlap(
    noise: float, apart: float, num_classes: int
) -> None:
    """The rate is the share above the cut that the rate itself corrects for accidental hits."""
    verdict, _ = judge_mixture(noise, num_classes, percentile=10.0, apart=apart)
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    for assumed, percentile in ((rate, 10.0), (low, 20.0), (high, 5.0)):
        corrected = correct_percentile(percentile, assumed, num_classes)
        cut = verdict.counterfactual.threshold(corrected)
        assert (verdict.scores >= cut).float().mean() == pytest.approx(assumed, abs=0.01)
        if assumed == rate:
            assert verdict.threshold <= cut + 0.02


@pytest.mark.parametrize("percentile", [0.0, 2.0, 10.0, 40.0])
def test_no_more_wrong_ones_are_kept_than_the_percentile_allows(percentile: float) -> None:
    verdict, wrong = judge_mixture(0.3, 3, percentile)
    assert (verdict.scores[wrong] < verdict.threshold).float().mean() <= percentile / 100 + 0.02


def test_the_noise_rates_interval_is_that_of_half_and_twice_the_percentile() -> None:
    """Wrong and right overlap here, so that the cut matters."""
    verdict, _ = judge_mixture(0.2, 100, apart=3.0)
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    for percentile, expected in ((12.0, low), (6.0, rate), (3.0, high)):
        other, _ = judge_mixture(0.2, 100, percentile, apart=3.0)
        assert other.noise_rate is not None
        assert other.noise_rate[0] == expected
    assert low < rate < high


def test_the_interval_encloses_the_rate_also_where_hardly_anything_is_learnt() -> None:
    """Right and wrong nearly alike: the rate is then another estimate's, the interval is not."""
    verdict, _ = judge_mixture(0.2, 100, apart=1.0)
    assert verdict.removed_fraction < 0.7  # the percentile alone would take over 0.7
    assert verdict.noise_rate is not None
    rate, low, high = verdict.noise_rate
    assert low <= rate <= high


def test_examples_never_seen_do_not_count_for_the_noise_rate() -> None:
    sentinels = Counterfactual.from_losses(torch.linspace(5, 6, 50), "sentinels")
    scores = torch.tensor([0.0] * 30 + [7.0] * 10 + [NAN] * 40)
    labels = torch.tensor([0] * 40 + [-1] * 40)
    verdict = judge(scores, scores, labels, sentinels, 6.0, 5, num_classes=10)
    assert verdict.noise_rate == (0.25, 0.25, 0.25)
    assert verdict.num_removed == 10
