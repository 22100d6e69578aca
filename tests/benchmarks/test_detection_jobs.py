"""What jobs train on and leave, without training much."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from oddly.benchmarks.detection import training
from oddly.benchmarks.detection.cases import CASES, SMALL, SMALL_CASES, Case, load_case
from oddly.benchmarks.detection.conduct import Pace, list_cells, missing_jobs
from oddly.benchmarks.detection.jobs import FOLDS, Denoise, Fold, Job, Margins, MeanMargin, WarmUp
from oddly.benchmarks.detection.methods import METHODS, join_folds
from oddly.benchmarks.detection.store import Store
from oddly.benchmarks.detection.training import Conditions, too_late, train_job
from oddly.engine.pool import choose_next
from oddly.errors import InputError
from oddly.methods import Batch, Context

TINY = Case("tiny", "digits", 0.4, recipe=replace(SMALL, epochs=4), examples=320)


def test_the_order_of_the_cases() -> None:
    assert list(CASES)[:7] == [
        *("cifar10-uniform-40", "cifar10n-aggregate", "cifar10-asymmetric-40"),
        *("cifar100-uniform-40", "cifar10-instance-40", "cifar10n-random1", "cifar100-clean"),
    ]
    assert len(CASES) == 19


def test_one_recipe_for_every_resnet() -> None:
    recipes = {case.recipe for case in CASES.values() if case.recipe}
    assert {(r.model, r.epochs, r.batch_size) for r in recipes} == {
        ("resnet18", 30, 128),
        ("convnextv2_atto", 30, 128),
    }


def test_folds_part_the_examples_evenly() -> None:
    data = load_case(TINY, 0)
    held = [Fold(TINY, 0, part).held_out(data) for part in range(1, FOLDS + 1)]
    assert torch.cat(held).sort().values.equal(torch.arange(320))
    for k in range(10):
        counts = [int((data.train.labels[index] == k).sum()) for index in held]
        assert max(counts) - min(counts) <= 1
    selected = Fold(TINY, 0, 2).select(data)
    assert len(selected.train) == 320 - len(held[1])
    inside = sorted(set(range(320)) - set(held[1].tolist()))
    assert selected.train.labels.equal(data.train.labels[inside])
    assert [selected.train.ids[0], selected.train.ids[-1]] == [
        data.train.ids[inside[0]],
        data.train.ids[inside[-1]],
    ]


def test_threshold_examples_are_other_ones_in_each_run() -> None:
    data = load_case(TINY, 0)
    first, second = (Margins(TINY, 0, part).planted(data) for part in (1, 2))
    assert len(first) == len(second) == 32
    assert not set(first.tolist()) & set(second.tolist())
    selected = Margins(TINY, 0, 1).select(data)
    assert len(selected.class_names) == 11
    assert (selected.train.labels == 10).nonzero().flatten().tolist() == sorted(first.tolist())
    assert len(data.class_names) == 10 and int(data.train.labels.max()) == 9  # left alone


def test_rivals_get_the_treatment_their_authors_ask_for() -> None:
    data = load_case(replace(TINY, recipe=replace(SMALL, epochs=30, batch_size=128)), 0)
    case = replace(TINY, recipe=replace(SMALL, epochs=30, batch_size=128))
    aum, fold, warm = (kind(case, 0, 1).config(data) for kind in (Margins, Fold, WarmUp))
    assert (aum.epochs, aum.batch_size, aum.schedule, aum.learning_rate) == (
        15,
        64,
        "constant",
        0.1,
    )
    assert aum.weight_decay == 1e-4
    assert (fold.epochs, fold.batch_size, fold.schedule) == (10, 128, "cosine")
    assert (warm.epochs, warm.batch_size, warm.schedule) == (10, 64, "constant")
    assert warm.learning_rate == pytest.approx(0.02)
    assert WarmUp(case).adapt(replace(warm, epochs=30), 100).epochs == 30
    odd = Denoise(case).config(data)
    assert (odd.method, dict(odd.settings), odd.noise) == ("odd", {}, 0.0)


class Fixed(torch.nn.Module):
    """Gives back its inputs as logits."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.requires_grad_()


def test_mean_margin_by_hand() -> None:
    """Three epochs; the first is skipped: (1 + 5) / 2 and (-3 - 1) / 2."""
    method = MeanMargin()
    logits = [[[9.0, 0, 0], [9.0, 0, 0]], [[2.0, 1, 0], [1.0, 4, 4]], [[6.0, 0, 1], [0.0, 1, -1]]]
    method.num_examples = 2
    context = Context(Fixed(), None, 2, 3, epochs=3, seed=0)  # type: ignore[arg-type]
    for epoch, rows in enumerate(logits):
        context.epoch = epoch
        method.begin_epoch(context)
        batch = Batch(torch.tensor([1, 0]), torch.tensor(rows).flip(0), torch.tensor([0, 0]))
        method.loss(context.model, batch)
    assert method.epochs == 2
    assert (method.total / method.epochs).tolist() == [3.0, -2.0]


def test_join_folds_puts_everybody_back() -> None:
    folds = [
        {"index": np.array([2, 0]), "probabilities": np.array([[0.25, 0.75], [1, 0]], np.float16)},
        {"index": np.array([1]), "probabilities": np.array([[0.5, 0.4]], np.float16)},
    ]
    joined = join_folds(folds)
    assert joined == pytest.approx(np.array([[1, 0], [5 / 9, 4 / 9], [0.25, 0.75]]), abs=1e-3)
    assert joined.sum(1) == pytest.approx(1)


def test_too_late_for_one_more_epoch() -> None:
    """Ten seconds are left; what an earlier sitting took does not count."""
    curve = [{"seconds": 60.0}, {"seconds": 5.0}]
    deadline = time.time() + 10
    assert not too_late(curve, 1, deadline)
    assert too_late(curve, 0, deadline)
    assert not too_late([], 0, deadline) and too_late([], 0, deadline - 20)
    assert not too_late(curve, 0, None)


def test_a_stopped_job_goes_on_as_the_same_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after one epoch and called again: the arrays of the run that was not stopped."""
    job: Job = Margins(TINY, 0, 1)
    whole, parted = Store(tmp_path, tmp_path / "whole"), Store(tmp_path, tmp_path / "parted")
    assert train_job(job, Conditions(whole, device="cpu"))["done"]
    with monkeypatch.context() as stopped:
        stopped.setattr(training, "too_late", lambda curve, before, deadline: len(curve) > before)
        report = train_job(job, Conditions(parted, device="cpu"))
    assert not report["done"] and report["passes"] == 320
    saved = parted.checkpoints(job) / "checkpoint.pt"
    assert saved.exists() and not parted.is_done(job)
    content = saved.read_bytes()
    saved.write_bytes(content[:99])  # its own fault, not the method's: nothing is stored as failed
    with pytest.raises(InputError, match=f"cannot be read.*; remove {saved.parent} to train"):
        train_job(job, Conditions(parted, device="cpu"))
    assert not parted.is_done(job)
    saved.write_bytes(content)
    report = train_job(job, Conditions(parted, device="cpu"))
    assert report["done"] and report["passes"] == 320
    assert not parted.checkpoints(job).exists()
    expected, found = whole.read_job(job)[0], parted.read_job(job)[0]
    assert np.array_equal(expected["planted"], found["planted"])
    assert np.array_equal(expected["margins"], found["margins"])
    info = parted.read_job(job)[1]
    assert info["trained_passes"] == 2 * 320 and len(info["curve"]["train_loss"]) == 2


def test_labels_are_drawn_once(tmp_path: Path) -> None:
    store = Store(tmp_path, tmp_path / "work")
    data = store.load(TINY, 0, None)
    labels = store.labels(TINY, 0)
    assert np.array_equal(labels.given, data.train.labels.numpy())
    assert 0.3 < (labels.given != labels.true).mean() < 0.42
    other = labels.given.copy()
    other[0] = (other[0] + 1) % 10
    file = store.outputs("tiny", 0) / "labels.npz"
    np.savez(file, given=other.astype(np.uint8), true=labels.true.astype(np.uint8))
    assert np.array_equal(store.load(TINY, 0, None).train.labels.numpy(), other)


def test_a_job_that_cannot_work_is_stored_as_failed(tmp_path: Path) -> None:
    store = Store(tmp_path / "results", tmp_path / "work")
    broken = replace(TINY, recipe=replace(SMALL, learning_rate=1e20))
    report = train_job(Denoise(broken), Conditions(store, device="cpu"))
    assert report["done"] and "epoch 1" in report["error"]
    assert "error" in store.read_job(Denoise(broken))[1]


def test_what_is_missing_is_listed_once(tmp_path: Path) -> None:
    cells = list_cells(SMALL_CASES.values(), METHODS, 0)
    names = [job.name for job in missing_jobs(cells[: len(METHODS)], Store(tmp_path, tmp_path))]
    assert names == [
        *("odd", "fold-1", "fold-2", "fold-3", "fold-4", "fold-5"),
        *("margins-1", "margins-2", "odd_paper", "warmup", "erm"),
    ]


def test_the_most_valuable_job_that_fits() -> None:
    pace = Pace()
    waiting: list[Job] = [Denoise(TINY), Fold(TINY, 0, 1)]
    assert choose_next(waiting, pace.expect, 1.0) is waiting[0]  # nothing is known yet
    pace.learn(waiting[1], {"passes": 10, "plain_passes": 100, "seconds": 6.0})
    assert pace.expect(waiting[0]) == pytest.approx(60)
    assert pace.expect(waiting[1]) == pytest.approx(16)
    assert choose_next(waiting, pace.expect, 61.0) is waiting[0]
    assert choose_next(waiting, pace.expect, 20.0) is waiting[1]
    # None fits: the first one is stopped by the clock and goes on the next time.
    assert choose_next(waiting, pace.expect, 5.0) is waiting[0]
