from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Generator, Tensor
from torch.utils.data import Dataset

from oddly.data import NOISES, LabelledData, add_noise, error_rate, synthetic
from oddly.data import noise as noises
from oddly.errors import InputError


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def balanced(num_classes: int, per_class: int) -> Tensor:
    return torch.arange(num_classes).repeat(per_class)


def test_uniform_replaces_exactly_the_rate_by_any_class() -> None:
    labels = torch.full((10_000,), 3)
    given = noises.uniform(labels, 10, 0.4, seeded())
    changed = given != labels
    # 4,000 chosen, a tenth of them drawn right again: 3,600 wrong, deviation sqrt(4000 .1 .9) = 19
    assert abs(int(changed.sum()) - 3600) < 100
    assert labels.eq(3).all()
    # each of the nine wrong classes gets about 400
    counts = torch.bincount(given[changed], minlength=10)
    assert counts[3] == 0
    assert counts[torch.arange(10) != 3].min() > 300 and counts.max() < 500


def test_uniform_other_is_always_wrong() -> None:
    labels = balanced(3, 500)
    given = noises.uniform_other(labels, 3, 0.3, seeded())
    assert int((given != labels).sum()) == 450
    assert given.min() == 0 and given.max() == 2


def test_uniform_other_reaches_all_other_classes() -> None:
    labels = torch.zeros(4_000, dtype=torch.int64)
    counts = torch.bincount(noises.uniform_other(labels, 5, 1.0, seeded()), minlength=5)
    assert counts[0] == 0 and counts[1:].min() > 850


def test_pair_goes_to_the_next_class() -> None:
    labels = balanced(4, 25)
    given = noises.pair(labels, 4, 0.2, seeded())
    wrong = given != labels
    assert int(wrong.sum()) == 20
    assert torch.equal(given[wrong], (labels[wrong] + 1) % 4)


def test_asymmetric_follows_the_map_and_spares_the_rest() -> None:
    labels = balanced(3, 2_000)
    given = noises.asymmetric(labels, [1, 1, 0], 0.25, seeded())
    assert set(given[labels == 0].tolist()) == {0, 1}
    assert given[labels == 1].eq(1).all()
    assert set(given[labels == 2].tolist()) == {2, 0}
    for k in (0, 2):  # deviation of the share: sqrt(.25 .75 / 2000) = .01
        assert (given[labels == k] != k).double().mean().item() == pytest.approx(0.25, abs=0.04)


def test_asymmetric_blocks_stay_inside_blocks_of_five() -> None:
    given = noises.asymmetric_blocks(torch.arange(10), 10, 1.0, seeded())
    assert given.tolist() == [1, 2, 3, 4, 0, 6, 7, 8, 9, 5]
    with pytest.raises(InputError, match="multiple of 5 classes, got 12"):
        noises.asymmetric_blocks(torch.arange(12), 12, 0.5, seeded())


def images_for(labels: Tensor, size: int = 6) -> Tensor:
    return torch.randint(0, 256, (len(labels), 3, size, size), generator=seeded(9)).to(torch.uint8)


def test_instance_rate_and_true_class_left_out() -> None:
    labels = balanced(5, 800)
    given = noises.instance(labels, 5, 0.3, seeded(), images_for(labels), [0.5] * 3, [0.3] * 3)
    assert (given != labels).double().mean().item() == pytest.approx(0.3, abs=0.03)
    everything = noises.instance(labels, 5, 1.0, seeded(), images_for(labels), [0.5] * 3, [0.3] * 3)
    # normal(1, .1) clamped: half are exactly 1, the rest lose .08 on average
    assert (everything != labels).double().mean().item() == pytest.approx(0.96, abs=0.02)


def test_instance_follows_the_picture() -> None:
    """The same picture gets the same wrong class nearly always; random pictures do not."""
    labels = torch.zeros(600, dtype=torch.int64)
    same = images_for(labels[:1], 16).expand(600, 3, 16, 16)
    other = images_for(labels, 16)
    top = []
    for images in (same, other):
        given = noises.instance(labels, 6, 0.9, seeded(), images, [0.5] * 3, [0.3] * 3)
        counts = torch.bincount(given, minlength=6)[1:]
        top.append(int(counts.max()) / int(counts.sum()))
    assert top[0] > 0.95 and top[1] < 0.6


def test_instance_matches_a_slow_twin() -> None:
    """Which wrong class: the same softmax written out example by example."""
    labels = torch.tensor([0, 1, 0])
    images = images_for(labels, 4)
    given = noises.instance(labels, 3, 1.0, seeded(5), images, [0.4, 0.5, 0.6], [0.2, 0.3, 0.4])
    generator = seeded(5)
    rates = torch.empty(3).normal_(1.0, 0.1, generator=generator).clamp(0, 1)
    flipped = torch.rand(3, generator=generator) < rates
    expected = labels.clone()
    for k in (0, 1):
        chosen = [i for i in range(3) if labels[i] == k and flipped[i]]
        if not chosen:
            continue
        projection = torch.randn(48, 3, generator=generator)
        rows = []
        for i in chosen:
            x = [
                (images[i, c].double() / 255 - (0.4, 0.5, 0.6)[c]) / (0.2, 0.3, 0.4)[c]
                for c in range(3)
            ]
            logits = torch.stack(x).flatten() @ projection.double()
            weights = torch.exp(logits - logits.max())
            weights[k] = 0
            rows.append(weights / weights.sum())
        draws = torch.multinomial(torch.stack(rows).float(), 1, generator=generator)
        for i, draw in zip(chosen, draws.flatten(), strict=True):
            expected[i] = draw
    assert flipped.any()
    assert torch.equal(given, expected)


class OneByOne(Dataset[Tensor]):
    def __init__(self, images: Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Tensor:
        return self.images[index]


def test_instance_reads_lazy_images_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic(per_class=30)
    assert isinstance(data.train.images, Tensor)
    lazy = replace(data, train=replace(data.train, images=OneByOne(data.train.images)))
    a = add_noise(data, "instance", 0.5, seeded())
    assert torch.equal(a.train.labels, add_noise(lazy, "instance", 0.5, seeded()).train.labels)
    # and in pieces of four images: as many flips, the same examples
    monkeypatch.setattr(noises, "CHUNK", 4 * 3 * 8 * 8)
    b = add_noise(lazy, "instance", 0.5, seeded())
    assert torch.equal(a.train.labels != data.train.labels, b.train.labels != data.train.labels)


def test_instance_averages_large_images_down(monkeypatch: pytest.MonkeyPatch) -> None:
    small = images_for(torch.zeros(40, dtype=torch.int64), 4)
    large = small.repeat_interleave(3, 2).repeat_interleave(3, 3)
    monkeypatch.setattr(noises, "PROJECTED_SIDE", 4)
    labels = balanced(4, 10)
    a, b = (
        noises.instance(labels, 4, 0.8, seeded(), images, [0.5] * 3, [0.3] * 3)
        for images in (small, large)
    )
    assert torch.equal(a, b)


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_every_kind_is_repeatable_and_leaves_the_data_alone(kind: str) -> None:
    data = replace(synthetic(num_classes=5), confused_with=[1, 0, 3, 2, 4], true_labels=None)
    before = data.train.labels.clone()
    noisy = add_noise(data, kind, 0.5, seeded(1))
    assert torch.equal(data.train.labels, before)
    assert torch.equal(noisy.train.labels, add_noise(data, kind, 0.5, seeded(1)).train.labels)
    assert not torch.equal(noisy.train.labels, add_noise(data, kind, 0.5, seeded(2)).train.labels)
    assert noisy.train.labels.dtype == torch.int64
    assert noisy.true_labels is not None and torch.equal(noisy.true_labels, before)
    assert 0.2 < (error_rate(noisy) or 0) < 0.65
    assert error_rate(add_noise(data, kind, 0.0, seeded())) == 0


def test_known_truth_is_kept_when_noise_is_added_twice() -> None:
    data = synthetic(per_class=200)
    once = add_noise(data, "uniform_other", 0.2, seeded(1))
    twice = add_noise(once, "uniform_other", 0.2, seeded(2))
    assert twice.true_labels is data.true_labels
    assert 0.3 < (error_rate(twice) or 0) < 0.4  # .2 + .2, less what met twice


@pytest.mark.parametrize("kind", ["uniform", "pair", "instance"])
def test_what_a_person_decided_stays(kind: str) -> None:
    data = synthetic(num_classes=10, per_class=20)
    data = replace(data, decided=torch.arange(200) < 100)
    noisy = add_noise(data, kind, 0.5, Generator().manual_seed(0)).train.labels
    changed = noisy != data.train.labels
    assert not changed[:100].any() and changed[100:].any()


def test_error_rate_without_truth_is_unknown() -> None:
    assert error_rate(replace(synthetic(), true_labels=None)) is None


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_bad_rate(rate: float) -> None:
    with pytest.raises(InputError, match=r"within 0\.\.1"):
        add_noise(synthetic(), "uniform", rate, seeded())


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown noise 'unifrom'; did you mean 'uniform'"):
        add_noise(synthetic(), "unifrom", 0.4, seeded())


def test_asymmetric_needs_a_map() -> None:
    with pytest.raises(InputError, match="not defined for synthetic"):
        add_noise(synthetic(), "asymmetric", 0.4, seeded())


@pytest.mark.parametrize("kind", ["uniform_other", "pair", "instance"])
def test_one_class_has_no_other(kind: str) -> None:
    data: LabelledData = synthetic(num_classes=1)
    with pytest.raises(InputError, match="two classes"):
        add_noise(data, kind, 0.4, seeded())


def test_instance_noise_needs_images() -> None:
    data = synthetic()
    features = replace(data, train=replace(data.train, images=torch.randn(len(data.train), 4)))
    with pytest.raises(
        InputError, match="noise instance needs images, but synthetic contains features"
    ):
        add_noise(features, "instance", 0.3, seeded())
