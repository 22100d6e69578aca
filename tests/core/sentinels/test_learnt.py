"""Whether the network has learnt enough to be believed, and who is told where it has not."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import Denoiser, Verdict, denoise
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels import learnt
from oddly.core.sentinels.cut import known_in_order, share_of_vague
from oddly.core.sentinels.learnt import LEARNT, NOTHING, SURE, VAGUE
from oddly.core.sentinels.planting import Scored, separation
from oddly.data import DataOptions, load_data
from oddly.errors import InputError
from tests.reference import sentinels as twin

NAN = math.nan


def contrast(planted: Tensor, scores: Tensor) -> float:
    """Of scores as they come."""
    return learnt.contrast(known_in_order(planted), known_in_order(scores))


def contrast_needed(planted: Tensor, scores: Tensor, num_classes: int) -> float:
    return learnt.contrast_needed(known_in_order(planted), known_in_order(scores), num_classes)


@pytest.mark.parametrize("seed", range(4))
def test_contrast_against_the_twin(seed: int) -> None:
    planted, scores = twin.draw_scores(seed)
    expected = twin.contrast(planted.tolist(), scores.tolist())
    assert contrast(planted, scores) == pytest.approx(expected, rel=1e-4)


def test_contrast_by_hand() -> None:
    """Half 5, 7 and tenth -1, 1: means 6 and 0, variances 1 and 1. The others do not count."""
    planted = torch.tensor([-9.0, 5.0, NAN, 1.0, 7.0])
    scores = torch.tensor([1.0, 99.0, -1.0, *[4.0] * 16, NAN, 50.0])
    assert contrast(planted, scores) == pytest.approx(6.0)


def test_all_alike_is_no_contrast_and_no_nan() -> None:
    assert contrast(torch.full((5,), 3.0), torch.full((9,), 3.0)) == 0.0
    assert contrast(torch.tensor([3.0]), torch.tensor([3.0])) == 0.0


SEEN = Scored(torch.arange(9.0), torch.arange(9), torch.arange(1, 10))
UNSEEN = SEEN._replace(scores=torch.full((9,), NAN))


@pytest.mark.parametrize(
    ("planted", "scores"),
    [
        (torch.full((9,), 1e38), torch.full((90,), -1e38)),  # no spread, and a difference of 2e38
        (3e38 * torch.linspace(-1, 1, 9), 3e38 * torch.linspace(-1, 1, 90)),
        (1e20 * torch.linspace(0, 1, 9), 1e20 * torch.linspace(-1, 0, 90)),
        (1e-30 * torch.linspace(0, 1, 9), 1e-30 * torch.linspace(-1, 0, 90)),
    ],
)
def test_numbers_however_large_make_numbers(planted: Tensor, scores: Tensor) -> None:
    assert math.isfinite(contrast(planted, scores))
    assert LEARNT <= contrast_needed(planted, scores, 10) <= SURE


def test_a_verdict_on_huge_scores_has_finite_figures() -> None:
    verdict = judged(5.0, scale=1e28)
    assert verdict.contrast == pytest.approx(judged(5.0).contrast, rel=1e-4)
    assert verdict.contrast_needed == pytest.approx(judged(5.0).contrast_needed, abs=0.01)
    assert verdict.tell_doubt() is None and 0.15 < verdict.removed_fraction < 0.25


def test_scores_near_overflow_and_none_at_all_are_refused() -> None:
    with pytest.raises(InputError, match=r"scores are beyond 1e\+30: check the model's outputs"):
        judged(5.0, scale=1e37)
    with pytest.raises(InputError, match="no example was observed"):
        judge_by_sentinels(UNSEEN, UNSEEN.scores, SEEN, 6.0, 3, 10)


def two_kinds(wrong_share: float, num_classes: int, apart: float) -> tuple[Tensor, Tensor]:
    """Sentinels and examples; wrong ones score `apart` more, sentinels that hit the truth less."""
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(40_000, generator=generator) < wrong_share
    fair = torch.rand(4_000, generator=generator) >= wrong_share / (num_classes - 1)
    noise = [torch.randn(size, generator=generator) for size in (4_000, 40_000)]
    return apart * fair + noise[0], apart * wrong + noise[1]


@pytest.mark.parametrize(
    ("num_classes", "wrong_share"), [(2, 0.0), (2, 0.3), (10, 0.1), (10, 0.5), (10, 0.8)]
)
def test_learnt_or_not_however_many_labels_are_wrong(num_classes: int, wrong_share: float) -> None:
    """Two normal curves, one upon the other: (1.755 + 0.798) deviations of 0.41 and 0.60 apart."""
    upon, near, far = (two_kinds(wrong_share, num_classes, apart) for apart in (0.0, 0.5, 5.0))
    assert contrast(*upon) == pytest.approx(4.96, abs=0.1)
    assert contrast(*near) < contrast_needed(*near, num_classes)
    assert contrast(*far) > contrast_needed(*far, num_classes) + 2


def test_the_vague_are_those_above_the_cut_less_those_that_look_random() -> None:
    """Sentinels 1 … 100; of 1,000 examples 200 lie above 6 % of them, 100 of these above half."""
    sentinels = torch.arange(1.0, 101.0)
    ordered = torch.cat((torch.full((800,), -9.0), torch.full((100,), 30.0)))
    ordered = torch.cat((ordered, 50.9 + torch.linspace(0, 49, 100)))
    # 100 of 1,000 above the median are half of the random ones: a noise rate of 0.2, none vague
    assert share_of_vague(ordered, sentinels, 10_000) == pytest.approx(0.0, abs=0.002)
    ordered[-50:] = 30.0
    ordered = ordered.sort().values
    # now 50: a rate of 0.1; the other 0.1 of all is vague
    assert share_of_vague(ordered, sentinels, 10_000) == pytest.approx(0.1, abs=0.002)
    needed = contrast_needed(sentinels, ordered, 10_000)
    assert needed == pytest.approx(LEARNT + 0.1 * VAGUE, abs=0.03)
    ordered[-400:-50] = 30.0  # 0.45 and more: as vague as can be
    assert contrast_needed(sentinels, ordered, 10_000) == SURE


def test_trust_falls_from_the_needed_contrast_to_nine_tenths_of_it() -> None:
    found = [learnt.trust(contrast, 8.0) for contrast in (20.0, 8.0, 7.6, 7.2, 5.0)]
    assert found == pytest.approx([1.0, 1.0, 0.5, 0.0, 0.0])
    assert learnt.trust(NOTHING - 0.01, 8.0) is None


@pytest.mark.parametrize("options", [{"percentile": 40.0}, {"target_precision": 0.95}])
def test_what_is_needed_is_nothing_of_the_users(options: dict[str, float]) -> None:
    assert judged(2.0, **options).contrast_needed == judged(2.0).contrast_needed


def test_why_separation_is_not_asked() -> None:
    """Of two classes with 30 % wrong labels told apart perfectly it makes less than of a muddle."""
    perfect, muddle = two_kinds(0.3, 2, 20.0), two_kinds(0.0, 10, 1.0)
    assert separation(*perfect) < separation(*muddle)
    assert contrast(*perfect) > 5 * contrast(*muddle)


def judged(
    apart: float = 5.0,
    scale: float = 1.0,
    percentile: float = 6.0,
    target_precision: float | None = None,
) -> Verdict:
    """By sentinels, of ten classes with 20 % wrong labels."""
    planted, scores = two_kinds(0.2, 10, apart)
    examples, sentinels = (
        Scored(
            scale * column, torch.arange(len(column)) % 10, torch.arange(1, len(column) + 1) % 10
        )
        for column in (scores, planted)
    )
    return judge_by_sentinels(
        examples, scores, sentinels, percentile, 3, 10, False, target_precision
    )


def test_contrast_is_of_the_scores_before_they_are_shifted() -> None:
    assert judged().contrast == contrast(*two_kinds(0.2, 10, 5.0))


def test_a_verdict_that_is_not_to_be_trusted_says_so() -> None:
    for found, doubted in ((6.99, True), (7.0, False), (None, False)):
        verdict = replace(judged(), contrast=found, contrast_needed=7.0)
        assert verdict.hardly_learnt == doubted and ("hardly learnt" in str(verdict)) == doubted
        assert "\n" not in repr(verdict) and repr(verdict).startswith("epoch 3: ")
        assert repr(verdict).endswith("unreliable") == doubted
    doubt = replace(judged(), contrast=3.0).tell_doubt()
    assert doubt is not None and "(contrast 3.00, 6.50 needed)" in doubt
    assert "prune at another epoch" in doubt and "look before you remove" in doubt
    keep = torch.arange(1000) >= 430
    assert "many of the 430 removed (43.0 %) may be right; " in str(
        replace(judged(), contrast=3.0, keep=keep)
    )


def test_where_nothing_is_removed_nothing_is_doubted() -> None:
    keep = torch.ones(40_000, dtype=torch.bool)
    verdict = replace(judged(), contrast=7.0, contrast_needed=8.0, keep=keep)
    assert verdict.hardly_learnt and verdict.tell_doubt() is None
    assert "\n" not in str(verdict)
    blind = replace(verdict, contrast=6.4)  # too little for any network: "0 removed" is no news
    assert "do not trust this verdict: nothing is removed; " in str(blind)


def emptied(spared: tuple[int, ...], small: int = 0) -> Verdict:
    """20 of the 100 labels in each of five classes look wrong; `small` classes of two do as well.

    Those of the spared classes stay.
    """
    labels = torch.cat((torch.arange(1000) % 10, 10 + torch.arange(2 * small) // 2))
    wrong = (torch.arange(len(labels)) < 200) & (labels < 5) | (labels >= 10)
    scores = torch.where(wrong, 2.0, 0.0)
    keep = ~wrong | torch.isin(labels, torch.tensor(spared, dtype=torch.int64))
    return replace(
        judged(), keep=keep, scores=scores, labels=labels, threshold=1.0, spared_classes=spared
    )


@pytest.mark.parametrize(("spared", "doubted"), [((), False), ((0,), False), ((0, 1, 2), True)])
def test_classes_that_would_be_emptied_speak_against_a_verdict(
    spared: tuple[int, ...], doubted: bool
) -> None:
    verdict = emptied(spared)
    assert (verdict.num_spared, verdict.num_removed) == (20 * len(spared), 100 - 20 * len(spared))
    doubt = verdict.tell_doubt()
    assert (doubt is not None) == doubted
    if doubt:
        assert doubt.startswith("60 more labels look as wrong as the 40 removed, and are kept")
    assert replace(verdict, keep=verdict.keep | True, readmitted=60).tell_doubt() is None


def test_classes_too_small_to_judge_say_nothing_of_the_others() -> None:
    small = tuple(range(10, 210))
    verdict = emptied((0, *small), small=200)
    assert verdict.num_spared == 20 and verdict.num_removed == 80
    assert verdict.tell_doubt() is None


def test_labels_that_a_person_vouches_for_bring_no_doubt() -> None:
    """After a review nothing is removed any more; what was condemned was condemned all the same."""
    verdict = emptied((0, 1))
    some = {name: getattr(verdict, name)[:600] for name in ("keep", "scores", "labels")}
    verdict = replace(verdict, **some)
    assert verdict.num_spared == 40 and verdict.tell_doubt() is None
    kept = replace(verdict, keep=verdict.keep | True)
    assert kept.num_removed == 0 and kept.tell_doubt() is None


def test_the_doubt_stays_with_what_comes_back_and_with_what_was_saved() -> None:
    verdict = judged(apart=0.5)
    assert verdict.hardly_learnt
    later = verdict.readmit(verdict.removed[:2], torch.zeros(2, 10))
    assert later.tell_doubt() == verdict.tell_doubt()
    state = verdict.state_dict()
    assert Verdict.from_state(state).tell_doubt() == verdict.tell_doubt()
    for name in ("contrast_needed", "contrast"):  # as older checkpoints have it
        del state[name]
        assert Verdict.from_state(state).tell_doubt() is None


def train_on_digits(
    epochs: int, learning_rate: float, noise: float = 0.25, plant: bool = False
) -> tuple[Denoiser, Tensor]:
    """A loop of one's own: a small network on digits with wrong labels; also which are.

    With `plant` the Denoiser knows their number alone, and the loop asks it for labels.
    """
    data = load_data("digits", DataOptions())
    images = data.train.images
    assert isinstance(images, Tensor)
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(len(images), generator=generator) < noise
    shifts = torch.randint(1, 10, (len(images),), generator=generator)
    given = torch.where(wrong, (data.train.labels + shifts) % 10, data.train.labels)
    dataset = TensorDataset(images.flatten(1).float() / 255, given)
    if plant:
        denoiser = Denoiser(len(images), 10, epochs, counterfactual="sentinels")
        indexed = TensorDataset(*dataset.tensors, torch.arange(len(images)))
        loader: DataLoader[Any] = DataLoader(indexed, 32, sampler=denoiser.sampler)
    else:
        loader, denoiser = denoise(DataLoader(dataset, 32, shuffle=True), 10, epochs)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(dataset.tensors[0].shape[1], 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), learning_rate, momentum=0.9)
    for _ in range(epochs):
        for inputs, labels, index in loader:
            labels = denoiser.plant(index, labels)
            logits = model(inputs)
            denoiser.observe(index, logits, labels)
            optimiser.zero_grad()
            F.cross_entropy(logits, labels).backward()
            optimiser.step()
        denoiser.end_epoch(model)
    return denoiser, wrong


def told(verdict: Verdict | None) -> list[str]:
    assert verdict is not None
    return str(verdict).splitlines()


@pytest.mark.parametrize("plant", [False, True])
def test_a_loop_that_hardly_learns_is_warned_once(plant: bool) -> None:
    with pytest.warns(UserWarning, match="the network has hardly learnt") as caught:
        verdict = train_on_digits(epochs=4, learning_rate=0.002, plant=plant)[0].verdict
    assert len(caught) == 1
    assert caught[0].filename == __file__  # where end_epoch was called
    assert verdict is not None and verdict.hardly_learnt
    first, second = told(verdict)
    assert first.startswith("epoch 3: ") and second == str(caught[0].message)


@pytest.mark.parametrize(("epochs", "noise"), [(12, 0.25), (40, 0.7)])
def test_a_loop_that_learns_hears_nothing(epochs: int, noise: float) -> None:
    """Though most labels be wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        denoiser, wrong = train_on_digits(epochs, 0.05, noise)
    verdict = denoiser.verdict
    assert verdict is not None and not verdict.hardly_learnt
    assert wrong[verdict.removed].float().mean() > 0.9
    assert len(told(verdict)) == 1 and verdict.tell_doubt() is None
