"""What both adapters share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from oddly.core import denoise
from oddly.errors import InputError
from oddly.integrations.feed import Feed, beside, check_adapted, count_epochs
from tests.integrations.toy import BATCH, K, N, given_set


def make_feed(**options: Any) -> Feed:
    loader = DataLoader(given_set(), BATCH, shuffle=True)
    return Feed(*denoise(loader, K, 5, carry=beside, refill=True, **options))


@pytest.mark.parametrize(
    ("epochs", "steps", "per_step", "limit", "expected"),
    [
        (7, -1, 1, 1.0, 7),
        (-1, -1, 1, 1.0, None),
        (-1, 32, 1, 1.0, 2),
        (-1, 33, 1, 1.0, 3),
        (2, 33, 1, 1.0, 2),
        (-1, 72, 3, 1.0, 12),  # six steps an epoch, of which the last takes one batch
        (-1, 16, 1, 4, 4),  # four batches an epoch
        (-1, 16, 1, 0.25, 4),
        (-1, 32, 1, 99, 2),  # no more than there are
    ],
)
def test_epochs_until_a_limit(
    epochs: int, steps: int, per_step: int, limit: float, expected: int | None
) -> None:
    loader = DataLoader(given_set(), BATCH)
    assert len(loader) == 16
    assert count_epochs(epochs, steps, loader, per_step, limit) == expected


def test_it_looks_like_the_loader_it_stands_for() -> None:
    feed = make_feed()
    assert (len(feed), feed.batch_size, len(feed.dataset)) == (16, BATCH, N)
    assert len(feed.dataset[0]) == 2


def test_indices_are_known_by_a_batchs_number_also_from_the_middle_of_an_epoch() -> None:
    feed = make_feed()
    points = feed.dataset.tensors[0]
    batches = list(feed)
    whole = dict(feed.indices)
    assert all(torch.equal(points[whole[number]], x) for number, (x, _) in enumerate(batches))
    feed.done = 5
    for (inputs, _), (before, _) in zip(feed, batches[5:], strict=True):
        assert torch.equal(inputs, before)
    assert sorted(feed.indices) == list(range(5, 16))
    assert all(torch.equal(index, whole[number]) for number, index in feed.indices.items())


@pytest.mark.parametrize("labels", [torch.zeros(3, K), torch.zeros(6).long(), ["a", "b", "c"]])
def test_labels_that_are_not_one_class_per_example(labels: Any) -> None:
    with pytest.raises(
        InputError, match="a batch of 3 examples has labels .*expected one class index"
    ):
        make_feed().observe(torch.arange(3), torch.zeros(3, K), labels)


def test_a_collator_that_leaves_out_examples_is_asked_for() -> None:
    feed, index = make_feed(), torch.arange(3)
    with pytest.raises(InputError, match="; does your collate_fn leave out or repeat some"):
        feed.observe(index, torch.zeros(2, K), torch.zeros(2).long())
    with pytest.raises(InputError, match="; convert to one-hot or mix labels in the training"):
        feed.observe(index, torch.zeros(3, K), torch.zeros(3, K))


@pytest.mark.filterwarnings("ignore:the network has hardly learnt")
def test_whoever_was_never_seen_is_counted() -> None:
    feed = make_feed(prune_after=1)
    for number, (_, labels) in enumerate(feed):
        if number < 12:
            feed.observe(feed.indices[number], torch.eye(K)[labels] * 5, labels)
    with pytest.warns(UserWarning, match="160 of 640 examples were never seen and are kept"):
        verdict = feed.finish(1, nn.Identity())
    assert verdict is not None
    assert verdict.keep[verdict.scores.isnan()].all()


def test_no_verdict_and_what_to_do_about_it() -> None:
    feed = make_feed(prune_after=2)
    for stopped in (False, True):  # nor is there anything to judge by before an epoch has ended
        with pytest.warns(UserWarning, match="before the verdict .*epochs=.*prune_after="):
            assert feed.conclude(nn.Identity(), stopped) is None


@pytest.mark.filterwarnings("ignore:the network has hardly learnt")
def test_who_stops_before_e_gets_a_verdict_by_what_there_was() -> None:
    stopped, planned = make_feed(prune_after=5), make_feed(prune_after=1)
    for feed in (stopped, planned):
        for number, (_, labels) in enumerate(feed):
            feed.observe(feed.indices[number], torch.eye(K)[labels] * 5, labels)
    expected = planned.finish(1, nn.Identity())
    assert stopped.finish(1, nn.Identity()) is None
    verdict = stopped.conclude(nn.Identity(), stopped=True)
    assert verdict is not None and expected is not None and verdict.epoch == 1
    assert torch.equal(verdict.keep, expected.keep)
    assert torch.equal(verdict.scores, expected.scores)
    assert stopped.conclude(nn.Identity(), stopped=True) is None  # it is there already


def test_a_verdict_that_cannot_be_is_no_reason_to_lose_a_training() -> None:
    feed = make_feed(prune_after=5, counterfactual="weights")
    for number, (_, labels) in enumerate(feed):
        feed.observe(feed.indices[number], torch.zeros(len(labels), K), labels)
    feed.finish(1, nn.Linear(1, K))
    with pytest.warns(UserWarning, match="stopped before the verdict on the labels: "):
        assert feed.conclude(nn.Identity(), stopped=True) is None  # it has no final layer


@pytest.mark.parametrize(("epochs", "lost"), [(3, False), (9, True)])
def test_a_verdict_that_cannot_be_after_the_last_epoch(epochs: int, lost: bool) -> None:
    """Every score is NaN: that ends a training, unless it has ended anyway."""
    loader = DataLoader(given_set(), BATCH, shuffle=True)
    feed = Feed(*denoise(loader, K, epochs, prune_after=3, carry=beside, refill=True))
    for epoch in range(1, 4):
        for number, (_, labels) in enumerate(feed):
            feed.observe(feed.indices[number], torch.full((len(labels), K), torch.nan), labels)
        if epoch == 3 and lost:
            with pytest.raises(InputError, match="outputs are NaN"):
                feed.finish(epoch, nn.Linear(2, K))
        elif epoch == 3:
            with pytest.warns(UserWarning, match="no verdict on the labels: .*outputs are NaN"):
                assert feed.finish(epoch, nn.Linear(2, K)) is None
        else:
            feed.finish(epoch, nn.Linear(2, K))


def test_a_checkpoint_of_fewer_processes(tmp_path: Path) -> None:
    feed = make_feed()
    with pytest.raises(InputError, match="oddly_0.pt is missing: .* saved by another Trainer"):
        feed.read(tmp_path, 0)
    for rank in range(2):
        feed.write(tmp_path, rank)
    with pytest.raises(InputError, match="oddly_2.pt .* saved by 2 processes; resume with as many"):
        feed.read(tmp_path, 2)


def test_an_option_that_nobody_knows() -> None:
    check_adapted(["percentile", "prune_after", "label_key", "num_classes"])
    with pytest.raises(InputError, match="unknown option 'percentil'; did you mean 'percentile'?"):
        check_adapted(["percentil"])
    with pytest.raises(InputError, match="unknown option 'refill'"):
        check_adapted(["refill"])
