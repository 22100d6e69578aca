"""When sentinels say that it is time, and where they would cut: histories and scores by hand."""

from __future__ import annotations

import pytest
import torch

from oddly.core.sentinels import Sentinels, estimate_cut


def make(num_examples: int) -> Sentinels:
    return Sentinels(num_examples, 10, "ema", seed=0)


def memorised_after(history: list[float], epochs: int, num_examples: int = 50_000) -> int | None:
    """The epoch after which sentinels of this history, but without any score, say it is time."""
    sentinels = make(num_examples)
    for share in history:
        sentinels.memorised.append(share)
        if sentinels.say_now(epochs, torch.zeros(num_examples)):
            return len(sentinels.memorised)
    return None


@pytest.mark.parametrize(
    ("epochs", "latest"), [(1, 1), (2, 1), (3, 2), (4, 3), (10, 8), (30, 24), (32, 25), (200, 160)]
)
def test_never_memorised_means_the_latest(epochs: int, latest: int) -> None:
    assert memorised_after([0.1] * epochs, epochs) == latest
    falling = [0.5 / (epoch + 1) for epoch in range(epochs)]
    assert memorised_after(falling, epochs) == latest


@pytest.mark.parametrize(("epochs", "earliest"), [(3, 1), (10, 4), (30, 10), (31, 11), (200, 67)])
def test_memorised_from_the_start_means_the_earliest(epochs: int, earliest: int) -> None:
    rising = [0.0] + [0.3 + 0.01 * epoch for epoch in range(epochs)]
    assert memorised_after(rising, epochs) == max(2, earliest)


def test_a_rise_by_hand() -> None:
    """Lowest mean of three 0.02; 0.05 is reached when (0.02 + 0.05 + 0.09) / 3 = 0.053."""
    history = [0.1, 0.06, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.05, 0.09]
    assert memorised_after(history[:-1], 30) is None
    assert memorised_after(history, 30) == 13


def test_the_first_epochs_are_averaged_over_what_there_is() -> None:
    """Windows: 0.10; 0.06; 0.06; 0.07; the lowest is that of two epochs."""
    history = [0.10, 0.02, 0.06, 0.13]
    assert memorised_after(history, 9) is None  # 0.07 < 0.06 + 0.03
    assert memorised_after([0.10, 0.02, 0.06, 0.19], 9) == 4  # 0.09


def test_unrest_is_no_rise() -> None:
    """Ups and downs of two deviations of a share of 1,000, and one epoch that leaps out."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        noise = 0.007 * torch.randn(40, generator=generator).clamp(-2, 2)
        history = (0.05 + noise).tolist()
        history[20] += 0.03
        assert memorised_after(history, 40) == 32


def test_few_sentinels_need_a_larger_rise() -> None:
    """At 0.1 a share of 1,000 is good to about 0.01, one of 30 to about 0.05."""
    history = [0.1] * 12 + [0.14] * 3
    assert memorised_after(history, 30, num_examples=50_000) == 15
    assert memorised_after(history, 30, num_examples=300) is None
    assert memorised_after([0.1] * 12 + [0.24] * 3, 30, num_examples=300) is None
    assert memorised_after([0.1] * 12 + [0.4] * 3, 30, num_examples=300) in (14, 15)


def test_none_of_a_few_is_not_none_for_certain() -> None:
    """One of 30 memorised, after none: 0 ± 0 must not make a rise of it."""
    assert memorised_after([0.0] * 12 + [1 / 30] * 3, 30, num_examples=300) is None
    assert memorised_after([0.0] * 12 + [0.033] * 3, 30, num_examples=50_000) == 15


def separated_after(apart: float, num_wrong: int = 600, epochs: int = 30) -> int:
    """The epoch when sentinels that are never memorised say it is time.

    3,000 examples, margins -3 ± 1, of the wrong ones and of the 300 sentinels `apart` more.
    """
    generator = torch.Generator().manual_seed(0)
    sentinels = make(3000)
    scores = torch.randn(3000, generator=generator) - 3
    scores[:num_wrong] += apart
    planted = torch.randn(300, generator=generator) - 3 + apart
    while True:
        sentinels.ledger.record(torch.arange(300), planted)
        sentinels.close_epoch()
        sentinels.memorised[-1] = 0.1
        if sentinels.say_now(epochs, scores):
            return len(sentinels.memorised)


def test_a_separation_that_can_hardly_improve_means_the_earliest() -> None:
    assert separated_after(apart=8.0) == 10


def test_an_overlap_is_waited_upon() -> None:
    """Two apart: the best F1 that can be had is 0.7."""
    assert separated_after(apart=2.0) == 24


def test_without_wrong_labels_there_is_nothing_to_separate() -> None:
    assert separated_after(apart=8.0, num_wrong=0) == 24


def test_best_cut_by_hand() -> None:
    """Ten examples, the last four wrong; above the sentinels' median, 5.2, are two: η = 0.4."""
    ordered = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 5.0, 5.1, 6.5, 7.0])
    sentinels = torch.tensor([4.0, 4.2, 4.4, 5.1, 5.2, 6.0, 6.2, 6.4, 6.6, 9.0])
    best = estimate_cut(ordered, sentinels, num_classes=10**9)  # so many: no hit is accidental
    assert best.threshold == best.lowest == 4.0  # recall 1, four of four flagged
    assert best.f1 == pytest.approx(1.0)
    assert best.noise_rate == pytest.approx(0.4)


def test_best_cut_avoids_the_right_ones() -> None:
    """The lowest sentinel lies among the right labels: there six more would go for one found."""
    ordered = torch.tensor([0.0] * 10 + [1.0] * 6 + [4.15, 4.25, 4.6, 4.75])
    sentinels = torch.tensor([0.5, 4.0, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6, 4.7, 4.8])
    best = estimate_cut(ordered, sentinels, num_classes=10**9)
    assert 1.0 < best.lowest <= best.threshold <= 4.0
    assert best.f1 == pytest.approx(2 * 0.2 * 0.9 / (0.2 + 0.2))  # all four go, 0.9 are found
    assert best.noise_rate == pytest.approx(0.2)


def test_within_the_estimates_accuracy_the_lowest_cut_is_named() -> None:
    """400 wrong examples and 999 sentinels between 4 and 5, one of each further down.

    That one right example costs a thousandth of the F1: less than the estimate can tell.
    """
    wrong = 4.00125 + 0.0025 * torch.arange(400)
    ordered = torch.cat((torch.zeros(599), torch.tensor([3.5]), wrong))
    sentinels = torch.cat((torch.tensor([3.0]), 4 + torch.arange(1, 1000) / 1000))
    best = estimate_cut(ordered, sentinels, num_classes=10**9)
    assert best.lowest == 3.0
    assert 3.5 < best.threshold < 4.01
    assert best.noise_rate == pytest.approx(0.4)


def test_where_nothing_lies_above_nothing_can_be_found() -> None:
    best = estimate_cut(torch.zeros(5), torch.ones(4), num_classes=3)
    assert (best.f1, best.noise_rate) == (0.0, 0.0)


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_a_network_that_has_learnt_nothing_does_not_separate(num_classes: int) -> None:
    """Right labels look like planted ones: "all are wrong" would have an F1 of 1."""
    generator = torch.Generator().manual_seed(0)
    ordered = torch.randn(20_000, generator=generator).sort().values
    sentinels = torch.randn(1000, generator=generator).sort().values
    assert estimate_cut(ordered, sentinels, num_classes).f1 == 0.0


def test_f1_is_one_at_most() -> None:
    """All four wrong examples lie above the median of the sentinels: η is overestimated."""
    ordered = torch.tensor([0.0] * 16 + [5.0] * 4)
    assert estimate_cut(ordered, torch.full((10,), 4.0), num_classes=10**9).f1 <= 1.0
