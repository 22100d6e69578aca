"""Whether the network has learnt enough to be believed, and who is told where it has not."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from oddly.core import Denoiser, Verdict, denoise
from oddly.core.sentinels import Scored, contrast, separation
from oddly.core.verdict import LEARNT, VAGUE, judge_by_sentinels
from oddly.data import DataOptions, load_data
from tests.reference import sentinels as twin

NAN = math.nan


@pytest.mark.parametrize("seed", range(4))
def test_contrast_against_the_twin(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    planted = 2 + torch.randn(30 + seed, generator=generator)
    scores = 3 * torch.randn(200 + seed, generator=generator)
    scores[::7], planted[0] = NAN, math.inf
    expected = twin.contrast(planted.tolist(), scores.tolist())
    assert contrast(planted, scores) == pytest.approx(expected, rel=1e-4)


def test_contrast_by_hand() -> None:
    """Halves 5, 7 and -1, 1: means 6 and 0, variances 1 and 1. The other halves do not count."""
    planted = torch.tensor([-9.0, 5.0, NAN, 1.0, 7.0])
    scores = torch.tensor([1.0, 99.0, -1.0, 4.0])
    assert contrast(planted, scores) == pytest.approx(6.0)


def test_all_alike_is_no_contrast_and_no_nan() -> None:
    assert contrast(torch.full((5,), 3.0), torch.full((9,), 3.0)) == 0.0
    assert contrast(torch.tensor([3.0]), torch.tensor([3.0])) == 0.0


def two_kinds(wrong_share: float, num_classes: int, apart: float) -> tuple[Tensor, Tensor]:
    """Sentinels and examples; wrong ones score `apart` more, sentinels that hit the truth less."""
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(40_000, generator=generator) < wrong_share
    fair = torch.rand(4_000, generator=generator) >= wrong_share / (num_classes - 1)
    noise = [torch.randn(size, generator=generator) for size in (4_000, 40_000)]
    return apart * fair + noise[0], apart * wrong + noise[1]


@pytest.mark.parametrize("num_classes", [2, 10])
@pytest.mark.parametrize("wrong_share", [0.0, 0.1, 0.3])
def test_learnt_or_not_however_many_labels_are_wrong(num_classes: int, wrong_share: float) -> None:
    """Two normal curves, one upon the other: their halves lie 2 · 0.798 / 0.603 apart."""
    assert contrast(*two_kinds(wrong_share, num_classes, 0.0)) == pytest.approx(2.65, abs=0.06)
    assert contrast(*two_kinds(wrong_share, num_classes, 0.5)) < LEARNT
    assert contrast(*two_kinds(wrong_share, num_classes, 5.0)) > LEARNT


def test_why_separation_is_not_asked() -> None:
    """Of two classes with 30 % wrong labels told apart perfectly it makes less than of a muddle."""
    perfect, muddle = two_kinds(0.3, 2, 20.0), two_kinds(0.0, 10, 1.0)
    assert separation(*perfect) < separation(*muddle)
    assert contrast(*perfect) > 5 * contrast(*muddle)


def judged(apart: float = 5.0) -> Verdict:
    """By sentinels, of ten classes with 20 % wrong labels."""
    planted, scores = two_kinds(0.2, 10, apart)
    examples, sentinels = (
        Scored(
            column.clone(), torch.arange(len(column)) % 10, torch.arange(1, len(column) + 1) % 10
        )
        for column in (scores, planted)
    )
    return judge_by_sentinels(examples, scores, sentinels, 6.0, 3, 10)


def test_contrast_is_of_the_scores_before_they_are_shifted() -> None:
    assert judged().contrast == contrast(*two_kinds(0.2, 10, 5.0))


def test_a_verdict_that_is_not_to_be_trusted_says_so() -> None:
    needed = LEARNT + 0.25 * VAGUE
    for found, doubted in ((needed - 0.01, True), (needed, False), (None, False)):
        verdict = replace(judged(), contrast=found, noise_rate=(0.375, 0.125, 0.5))
        assert verdict.hardly_learnt == doubted and ("hardly learnt" in str(verdict)) == doubted
    doubt = replace(judged(), contrast=3.0, noise_rate=None).tell_doubt()
    assert doubt is not None and "(contrast 3.00, 4.00 is needed)" in doubt
    assert "train longer" in doubt


def test_the_doubt_stays_with_what_comes_back_and_with_what_was_saved() -> None:
    verdict = judged(apart=0.5)
    assert verdict.hardly_learnt
    assert verdict.readmit(verdict.removed[:2], torch.zeros(2, 10)).contrast == verdict.contrast
    state = verdict.state_dict()
    assert Verdict.from_state(state).contrast == verdict.contrast
    del state["contrast"]  # as an older checkpoint has it
    assert Verdict.from_state(state).tell_doubt() is None


def train_on_digits(epochs: int, learning_rate: float) -> Denoiser:
    """A loop of one's own: a small network on digits, a quarter of whose labels are wrong."""
    data = load_data("digits", DataOptions())
    images = data.train.images
    assert isinstance(images, Tensor)
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(len(images), generator=generator) < 0.25
    shifts = torch.randint(1, 10, (len(images),), generator=generator)
    given = torch.where(wrong, (data.train.labels + shifts) % 10, data.train.labels)
    dataset = TensorDataset(images.flatten(1).float() / 255, given)
    loader, denoiser = denoise(DataLoader(dataset, 32, shuffle=True), 10, epochs)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(dataset.tensors[0].shape[1], 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), learning_rate, momentum=0.9)
    for _ in range(epochs):
        for inputs, labels, index in loader:
            logits = model(inputs)
            denoiser.observe(index, logits, labels)
            optimiser.zero_grad()
            F.cross_entropy(logits, labels).backward()
            optimiser.step()
        denoiser.end_epoch(model)
    return denoiser


def told(verdict: Verdict | None) -> list[str]:
    assert verdict is not None
    return str(verdict).splitlines()


def test_a_loop_that_hardly_learns_is_warned_once() -> None:
    with pytest.warns(UserWarning, match="the network has hardly learnt") as caught:
        verdict = train_on_digits(epochs=4, learning_rate=0.001).verdict
    assert len(caught) == 1
    assert caught[0].filename == __file__  # where end_epoch was called
    assert verdict is not None and verdict.hardly_learnt
    assert verdict.contrast is not None and 2.0 < verdict.contrast < LEARNT
    first, second = told(verdict)
    assert first.startswith("epoch 3: ") and second == str(caught[0].message)


def test_a_loop_that_learns_hears_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = train_on_digits(epochs=12, learning_rate=0.05).verdict
    assert verdict is not None and not verdict.hardly_learnt
    assert verdict.contrast is not None and verdict.contrast > LEARNT + 1
    assert len(told(verdict)) == 1 and verdict.tell_doubt() is None
