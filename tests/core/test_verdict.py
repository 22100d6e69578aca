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
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels.confusion import find_shifts, look_up
from oddly.core.sentinels.planting import Scored
from oddly.errors import InputError

NAN = math.nan
# 0, 1, …, 10: its p-th percentile is p / 10.
COUNTERFACTUAL = Counterfactual.from_losses(torch.arange(11.0), "weights")


def make(scores: list[float], labels: list[int], **options: Any) -> Verdict:
    """Judged at threshold 5, by default between two classes; losses are the scores."""
    options = {"percentile": 50.0, "epoch": 3, "num_classes": 2, **options}
    return judge(torch.tensor(scores), torch.tensor(labels), COUNTERFACTUAL, **options)


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
    with pytest.raises(InputError, match=rf"empty classes or prune tiny ones.*{named} \(strict\)"):
        make(scores, labels, strict=True)


def test_strict_lets_an_ordinary_verdict_pass() -> None:
    assert make(big(9.0), [0] * 6, strict=True).removed.tolist() == [5]


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_label_types(dtype: torch.dtype) -> None:
    scores = torch.tensor(big(9.0) + [9.0])
    labels = torch.tensor([0] * 6 + [1], dtype=dtype)
    verdict = judge(scores, labels, COUNTERFACTUAL, 50.0, 1, num_classes=2)
    assert verdict.removed.tolist() == [5]
    assert verdict.spared_classes == (1,)


def test_a_later_look_counts_a_tenth() -> None:
    verdict = make(big(4.0, 5.5, 5.5, 9.0, 9.0), [0] * 10)
    logits = torch.tensor([[18.0, 0], [6, 0], [4, 0], [18, 0], [0, 4]])  # of labels 0
    again = verdict.readmit(torch.arange(5, 10), logits)  # the first was never removed
    assert again.scores[5:].tolist() == pytest.approx([4.0, 4.9, 5.1, 7.2, 9.4])
    assert again.keep[5:].tolist() == [True, True, False, False, False]
    assert again.tell_readmitted() == "1 example readmitted so far, 3 still removed"
    assert verdict.keep.tolist()[5:] == [True] + [False] * 4  # untouched
    twice = again.readmit(torch.tensor([7]), torch.tensor([[4.0, 0]]))
    assert twice.tell_readmitted() == "2 examples readmitted so far, 2 still removed"


def test_a_broken_network_readmits_nothing() -> None:
    verdict = make(big(6.0, 7.0), [0] * 7)
    again = verdict.readmit(torch.tensor([5, 6]), torch.full((2, 2), NAN))
    assert again.scores.tolist() == verdict.scores.tolist()
    assert again.num_removed == 2


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
    assert (row["score"], row["loss"]) == (7.0, 7.0)
    assert row["counterfactual_percentile"] == pytest.approx(100 * 7 / 11)
    assert table.iloc[6][["loss", "score", "counterfactual_percentile"]].isna().all()


def test_told_in_one_line() -> None:
    assert str(make(big(9.0), [0] * 6)) == (
        "epoch 3: 1 of 6 examples removed (16.7 %), score ≥ 5.000 (target percentile 50, weights)"
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


def test_a_counterfactual_of_nothing_is_refused() -> None:
    nothing = Counterfactual.from_losses(torch.empty(0), "wrong_label")
    with pytest.raises(InputError, match="NaN"):
        judge(torch.zeros(5), torch.zeros(5, dtype=torch.int64), nothing, 10.0, 1, 2)


def draw(num_classes: int = 4, noise: float = 0.2) -> tuple[Scored, Tensor, Scored, Tensor]:
    """5,000 examples, their losses, 500 sentinels, and who is wrong: margins of -3 or 2, ± 1.

    The last example was never seen.
    """
    generator = torch.Generator().manual_seed(0)

    def pick(size: int) -> Tensor:
        return torch.randint(num_classes, (size,), generator=generator)

    given = pick(5_000)
    rivals = (given + 1 + torch.randint(num_classes - 1, (5_000,), generator=generator)) % (
        num_classes
    )
    wrong = torch.rand(5_000, generator=generator) < noise
    scores = torch.where(wrong, 2.0, -3.0) + torch.randn(5_000, generator=generator)
    scores[-1], given[-1], rivals[-1], wrong[-1] = NAN, -1, -1, False
    planted = pick(500)
    margins = 2 + torch.randn(500, generator=generator)
    sentinels = Scored(margins, planted, (planted + 1) % num_classes)
    return Scored(scores, given.short(), rivals.short()), scores + 50, sentinels, wrong


def test_by_sentinels_scores_are_shifted_and_the_rest_is_handed_on() -> None:
    examples, losses, sentinels, wrong = draw()
    shifts = find_shifts(examples, sentinels, 6.0, 4)
    expected = examples.scores + look_up(shifts, examples)
    verdict = judge_by_sentinels(examples, losses, sentinels, 6.0, 3, 4)
    torch.testing.assert_close(verdict.scores, expected, equal_nan=True)
    planted = (sentinels.scores + look_up(shifts, sentinels)).sort().values
    torch.testing.assert_close(verdict.counterfactual.losses, planted)
    assert torch.equal(verdict.keep, ~(verdict.scores >= verdict.threshold))
    for found, column in ((verdict.losses, losses), (verdict.labels, examples.labels)):
        torch.testing.assert_close(found, column, equal_nan=True)
    assert verdict.rivals is not None
    assert torch.equal(verdict.rivals, examples.rivals)
    assert verdict.keep[-1]
    assert ((~verdict.keep) == wrong).float().mean() > 0.97
    assert verdict.counterfactual.source == "sentinels"


def test_rivals_have_a_column_of_their_own() -> None:
    pytest.importorskip("pandas")
    examples, losses, sentinels, _ = draw()
    table = judge_by_sentinels(examples, losses, sentinels, 6.0, 3, 4).to_pandas()
    assert list(table.columns[:3]) == ["index", "given_label", "rival_label"]
    assert table["rival_label"].tolist() == examples.rivals.tolist()


def test_rivals_go_through_a_file() -> None:
    examples, losses, sentinels, _ = draw()
    saved = judge_by_sentinels(examples, losses, sentinels, 6.0, 3, 4)
    file = io.BytesIO()
    torch.save(saved.state_dict(), file)
    file.seek(0)
    loaded = Verdict.from_state(torch.load(file, weights_only=True))
    assert loaded.rivals is not None and saved.rivals is not None
    assert torch.equal(loaded.rivals, saved.rivals)
    assert loaded.noise_rate == saved.noise_rate


def test_with_a_target_precision_the_percentile_is_what_came_of_it() -> None:
    verdicts = []
    for target in (None, 0.5, 0.8, 0.99):
        examples, losses, sentinels, _ = draw()
        verdicts.append(
            judge_by_sentinels(examples, losses, sentinels, 6.0, 3, 4, target_precision=target)
        )
    assert verdicts[0].percentile == 6.0
    removed = [verdict.num_removed for verdict in verdicts[1:]]
    assert removed == sorted(removed, reverse=True)
    for verdict in verdicts[1:]:
        below = (verdict.counterfactual.losses < verdict.threshold).float().mean()
        assert verdict.percentile == pytest.approx(100 * below.item(), abs=1e-3)


def test_a_named_percentile_moves_the_cut_but_not_the_noise_rate() -> None:
    found = {}
    for percentile in (6.0, 50.0):
        examples, losses, sentinels, _ = draw()
        found[percentile] = judge_by_sentinels(examples, losses, sentinels, percentile, 3, 4)
    assert found[50.0].num_removed < 0.8 * found[6.0].num_removed
    assert found[50.0].noise_rate == found[6.0].noise_rate


def test_a_precision_out_of_reach_is_told() -> None:
    """Wrong labels that score more than random ones do: two estimates of their number differ."""
    found = {}
    for target in (0.5, 0.999):
        examples, losses, sentinels, _ = draw()
        lower = sentinels._replace(scores=sentinels.scores - 2)
        found[target] = judge_by_sentinels(examples, losses, lower, None, 3, 4, False, target)
    assert found[0.5].tell_out_of_reach() is None
    told = found[0.999].tell_out_of_reach()
    assert told and told.startswith(
        "nothing is removed: no cut is expected to reach a precision of"
    )
    assert replace(found[0.999], readmitted=1).tell_out_of_reach() is None
    assert replace(found[0.999], spared_classes=(0,)).tell_out_of_reach() is None


def test_no_sentinel_observed_is_refused() -> None:
    examples, losses, _, _ = draw()
    none = Scored(torch.empty(0), *(torch.empty(0, dtype=torch.int64) for _ in range(2)))
    with pytest.raises(InputError, match="no sentinel was observed"):
        judge_by_sentinels(examples, losses, none, 6.0, 3, 4)
