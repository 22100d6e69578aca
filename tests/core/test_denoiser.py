"""Algorithm 1 by hand: a fixed linear model, every step and every epoch in view."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.core import Denoiser, KeepSampler, draw_losses
from oddly.core.ledger import STATISTICS
from oddly.errors import InputError
from tests.core.toy import K, N, Toy, make
from tests.reference import ledger as twin


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def test_finds_the_wrong_labels_and_prunes_the_sampler() -> None:
    toy, denoiser = Toy(), make()
    toy.run(denoiser, 2)
    assert denoiser.verdict is None
    assert len(denoiser.sampler) == N
    toy.run(denoiser, 1)
    assert denoiser.verdict is not None
    assert sorted(denoiser.verdict.removed.tolist()) == toy.wrong.tolist()
    assert len(denoiser.sampler) == N - len(toy.wrong)
    assert not set(denoiser.sampler) & set(toy.wrong.tolist())
    assert denoiser.verdict.epoch == 3
    assert torch.equal(denoiser.verdict.labels.long(), toy.labels)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_losses_and_threshold_are_the_twins(statistic: str) -> None:
    toy, denoiser = Toy(), make(statistic=statistic, percentile=30.0, seed=5, draws=999)
    toy.run(denoiser, 3)
    epochs = []
    for epoch in range(3):
        logits = toy.model(epoch)(toy.inputs).detach().double().numpy()
        losses = np.log(np.exp(logits).sum(1)) - logits[range(N), toy.labels.numpy()]
        epochs.append(list(enumerate(losses.tolist())))
    verdict = denoiser.verdict
    assert verdict is not None
    expected = twin.statistic(statistic, N, epochs)
    np.testing.assert_allclose(verdict.losses.numpy(), expected, rtol=1e-5, atol=1e-6)
    drawn = draw_losses(toy.model(2), 999, torch.Generator().manual_seed(5))
    assert verdict.threshold == pytest.approx(np.percentile(drawn.numpy(), 30.0), rel=1e-5)


def test_who_stops_before_e_can_have_the_verdict_now() -> None:
    toy, planned, stopped = Toy(), make(prune_after=2), make(prune_after=5)
    with pytest.raises(InputError, match="nothing to judge: no example was observed"):
        stopped.judge_now(toy.model(0))
    toy.run(planned, 2)
    toy.run(stopped, 2)
    assert stopped.verdict is None and planned.verdict is not None
    verdict = stopped.judge_now(toy.model(1))
    assert verdict is stopped.verdict and verdict.epoch == 2
    assert torch.equal(verdict.scores, planned.verdict.scores)
    assert verdict.removed.tolist() == planned.verdict.removed.tolist() != []
    assert len(stopped.sampler) == N - verdict.num_removed
    assert stopped.judge_now(toy.model(4)) is verdict  # it stands
    assert planned.judge_now(toy.model(4)) is planned.verdict


def test_an_epoch_that_was_broken_off_counts() -> None:
    """As the integrations close it: the verdict is that of an epoch that ended there."""
    toy, planned, stopped = Toy(), make(prune_after=3), make(prune_after=9)
    some = torch.arange(N // 2)
    for denoiser in (planned, stopped):
        toy.run(denoiser, 2)
        logits = toy.model(2)(toy.inputs[some])
        denoiser.observe(some, logits, toy.labels[some])
    expected, verdict = planned.end_epoch(toy.model(2)), stopped.judge_now(toy.model(2))
    assert expected is not None and verdict.epoch == expected.epoch == 3
    assert torch.equal(verdict.scores, expected.scores)
    assert torch.equal(verdict.keep, expected.keep)


def test_an_epoch_that_was_broken_off_counts_also_after_a_break() -> None:
    """What was observed of it lies in the checkpoint: the verdict must not be by less."""
    toy, broken = Toy(), make(prune_after=9)
    some = torch.arange(N // 2)
    broken.observe(some, toy.model(0)(toy.inputs[some]), toy.labels[some])
    state = through_a_file(broken.state_dict())
    expected, resumed = broken.judge_now(toy.model(0)), make(prune_after=9)
    resumed.load_state_dict(state)
    verdict = resumed.judge_now(toy.model(0))
    assert verdict.epoch == expected.epoch == 1
    assert torch.equal(verdict.keep, expected.keep)
    torch.testing.assert_close(verdict.scores, expected.scores, rtol=0, atol=0, equal_nan=True)


def test_what_was_observed_of_another_run_is_no_epoch_of_the_one_loaded() -> None:
    toy, saved, other = Toy(), make(prune_after=9), make(prune_after=9)
    toy.run(saved, 2)
    other.observe(torch.arange(N), toy.model(0)(toy.inputs), toy.labels)
    other.load_state_dict(through_a_file(saved.state_dict()))
    assert other.judge_now(toy.model(1)).epoch == 2


def test_a_checkpoint_of_an_older_version_can_be_loaded() -> None:
    toy, saved, resumed = Toy(), make(prune_after=9), make(prune_after=9)
    toy.run(saved, 2)
    state = saved.state_dict()
    del state["unclosed"], state["classes"], state["ledger"]["examples"]
    del state["ledger"]["statistic"]
    resumed.load_state_dict(through_a_file(state))
    assert resumed.judge_now(toy.model(1)).epoch == 2


def test_returns_a_verdict_at_the_end_of_epoch_e_only() -> None:
    toy, denoiser = Toy(), make(prune_after=2)
    returned = []
    for epoch in range(4):
        index = torch.arange(N)
        denoiser.observe(index, toy.model(epoch)(toy.inputs), toy.labels)
        returned.append(denoiser.end_epoch(toy.model(epoch)))
    assert [verdict is None for verdict in returned] == [True, False, True, True]
    assert returned[1] is denoiser.verdict


def test_nothing_is_observed_after_epoch_e() -> None:
    toy, denoiser = Toy(), make(prune_after=1)
    toy.run(denoiser, 1)
    before = denoiser.ledger.values.clone()
    denoiser.observe(torch.arange(N), torch.randn(N, K), toy.labels)
    denoiser.end_epoch(toy.model(1))
    assert torch.equal(denoiser.ledger.values, before)
    assert denoiser.verdict is not None
    assert torch.equal(denoiser.verdict.losses, before)


def test_the_sampler_follows_the_epochs() -> None:
    toy, denoiser = Toy(), make(prune_after=2)
    for epoch in range(4):
        assert denoiser.sampler.epoch == denoiser.epoch == epoch
        toy.run(denoiser, 1)


def test_a_later_look_at_the_removed_brings_some_back() -> None:
    toy, denoiser = Toy(), make()
    toy.run(denoiser, 3)
    removed = toy.wrong[:2]
    assert denoiser.verdict
    first, second = denoiser.verdict.scores[removed].tolist()
    logits = torch.zeros(2, K)
    logits[0, toy.labels[removed[0]]] = 500.0  # the first looks right by now, …
    logits[1, toy.true[removed[1]]] = 3.0  # … the second as wrong as before
    verdict = denoiser.reconsider(removed, logits)
    assert verdict.scores[removed].tolist() == pytest.approx([first - 50, second + 0.3])
    assert verdict.readmitted == 1
    assert set(denoiser.sampler) == set(range(N)) - set(toy.wrong[1:].tolist())


@pytest.mark.parametrize(("percentile", "removed"), [(10.0, N // 10), (100.0, 0)])
def test_a_higher_percentile_removes_less(percentile: float, removed: int) -> None:
    toy, denoiser = Toy(), make(percentile=percentile)
    toy.run(denoiser, 3)
    assert denoiser.verdict is not None
    assert len(denoiser.verdict.removed) == removed


def test_loss_is_fp32_also_for_bf16_logits() -> None:
    """bf16 has eight bits: a loss computed in it would be off by up to 0.4 %."""
    denoiser = Denoiser(2, 2, prune_after=1, statistic="last")
    logits = torch.tensor([[5.0, 0.0], [0.0, 0.0]], dtype=torch.bfloat16, requires_grad=True)
    denoiser.observe(torch.tensor([0, 1]), logits, torch.tensor([0, 1]))
    denoiser.ledger.close_epoch()
    expected = [math.log1p(math.exp(-5)), math.log(2)]
    assert denoiser.ledger.values.tolist() == pytest.approx(expected, rel=1e-5)


def test_loss_is_fp32_also_under_autocast() -> None:
    denoiser = Denoiser(1, 2, prune_after=1, statistic="last")
    with torch.autocast("cpu", torch.bfloat16):
        denoiser.observe(torch.tensor([0]), torch.tensor([[5.0, 0.0]]), torch.tensor([0]))
    denoiser.ledger.close_epoch()
    assert denoiser.ledger.values[0].item() == pytest.approx(math.log1p(math.exp(-5)), rel=1e-5)


def test_observing_leaves_the_users_graph_alone() -> None:
    toy, model = Toy(), Toy().model(0)
    logits = model(toy.inputs)
    make().observe(torch.arange(N), logits, toy.labels)
    F.cross_entropy(logits, toy.labels).backward()
    assert model.weight.grad is not None


def test_unseen_examples_are_kept() -> None:
    toy, denoiser = Toy(), make(prune_after=1)
    seen = torch.arange(1, N)  # example 0 has a wrong label, but nobody looked
    denoiser.observe(seen, toy.model(0)(toy.inputs[seen]), toy.labels[seen])
    verdict = denoiser.end_epoch(toy.model(0))
    assert verdict is not None
    assert verdict.keep[0]
    assert verdict.labels[0] == -1
    assert sorted(verdict.removed.tolist()) == toy.wrong.tolist()[1:]


def test_a_label_seen_in_a_middle_epoch_alone_is_known() -> None:
    """drop_last may leave an example out of both the first epoch and epoch E."""
    toy, denoiser = Toy(), make(prune_after=3)
    for epoch in range(3):
        index = torch.arange(N) if epoch == 1 else torch.arange(N - 1)
        denoiser.observe(index, toy.model(epoch)(toy.inputs[index]), toy.labels[index])
        denoiser.end_epoch(toy.model(epoch))
    assert denoiser.verdict is not None
    assert not denoiser.verdict.losses[-1].isnan()
    assert denoiser.verdict.labels[-1] == toy.labels[-1]


@pytest.mark.parametrize("counterfactual", ["weights", "wrong_label"])
@pytest.mark.parametrize("done", [1, 2, 3, 4])
def test_resumed_from_a_file_it_ends_alike(done: int, counterfactual: str) -> None:
    unbroken, broken, resumed = (make(counterfactual=counterfactual) for _ in range(3))
    toy = Toy()
    toy.run(unbroken, 5)
    toy.run(broken, done)
    resumed.load_state_dict(through_a_file(broken.state_dict()))
    assert (resumed.verdict is None) == (done < 3)
    toy.run(resumed, 5 - done)
    assert_same_outcome(resumed, unbroken)


@pytest.mark.parametrize("counterfactual", ["weights", "wrong_label"])
def test_resumed_in_the_middle_of_an_epoch_it_ends_alike(counterfactual: str) -> None:
    unbroken, broken, resumed = (make(counterfactual=counterfactual) for _ in range(3))
    toy = Toy()
    toy.run(unbroken, 5)
    toy.run(broken, 1)
    first, second = torch.tensor(list(broken.sampler)).split(N // 2)
    broken.observe(first, toy.model(1)(toy.inputs[first]), toy.labels[first])
    resumed.load_state_dict(through_a_file(broken.state_dict()))
    resumed.observe(second, toy.model(1)(toy.inputs[second]), toy.labels[second])
    resumed.end_epoch(toy.model(1))
    toy.run(resumed, 3)
    assert_same_outcome(resumed, unbroken)


def assert_same_outcome(one: Denoiser, other: Denoiser) -> None:
    assert one.verdict is not None
    assert other.verdict is not None
    for name, value in vars(one.verdict).items():
        expected = getattr(other.verdict, name)
        if isinstance(value, Tensor):
            assert torch.equal(value, expected), name
        elif name != "counterfactual":
            assert value == expected, name
    assert torch.equal(one.verdict.counterfactual.losses, other.verdict.counterfactual.losses)
    assert one.epoch == other.epoch
    assert list(one.sampler) == list(other.sampler)


def test_the_same_seed_gives_the_same_verdict_bit_for_bit() -> None:
    first, second = make(seed=4), make(seed=4)
    Toy().run(first, 3)
    Toy().run(second, 3)
    assert_same_outcome(first, second)


@pytest.mark.parametrize(
    ("num_classes", "dtype"),
    [(10, torch.int16), (2**15 - 1, torch.int16), (2**15, torch.int32), (100_000, torch.int32)],
)
def test_labels_of_many_classes_are_stored_exactly(num_classes: int, dtype: torch.dtype) -> None:
    """Two bytes while they suffice, four beyond; the largest label survives either."""
    denoiser = Denoiser(10, num_classes, prune_after=1, draws=10)
    labels = torch.full((10,), num_classes - 1)
    logits = torch.zeros(10, num_classes)
    logits[:9, -1] = 50.0  # the tenth is wrong
    denoiser.observe(torch.arange(10), logits, labels)
    head = nn.utils.skip_init(nn.Linear, 1, num_classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    verdict = denoiser.end_epoch(head)
    assert verdict is not None
    assert verdict.labels.dtype == dtype
    assert verdict.labels.tolist() == labels.tolist()
    assert verdict.removed.tolist() == [9]  # its loss is log K, as every counterfactual one


@pytest.mark.parametrize("statistic", ["last", "ema"])
def test_ten_bytes_per_example_in_all(statistic: str) -> None:
    denoiser = Denoiser(10_000, 10, prune_after=2, statistic=statistic)
    denoiser.observe(torch.arange(4), torch.zeros(4, 10), torch.zeros(4, dtype=torch.int64))
    denoiser.end_epoch(nn.Linear(2, 10))
    held = [*vars(denoiser).values(), *denoiser._observed.state_dict().values()]
    held += vars(denoiser.ledger).values()
    total = sum(tensor.nbytes for tensor in held if isinstance(tensor, Tensor))
    assert total == pytest.approx(10 * 10_000, abs=100)


def test_seconds_count_and_are_resumed() -> None:
    toy, denoiser = Toy(), make()
    assert denoiser.seconds == 0.0
    toy.run(denoiser, 1)
    assert denoiser.seconds > 0
    resumed = make()
    resumed.load_state_dict(denoiser.state_dict())
    assert resumed.seconds == pytest.approx(denoiser.seconds)


def test_a_named_head_is_used() -> None:
    other = nn.Linear(2, K)
    nn.init.zeros_(other.weight)
    nn.init.zeros_(other.bias)
    model = nn.ModuleDict({"other": other, "fc": nn.Linear(2, K)})
    denoiser = make(prune_after=1, head="other")
    denoiser.observe(torch.arange(N), 9 * F.one_hot(Toy().labels).float(), Toy().labels)
    verdict = denoiser.end_epoch(model)
    assert verdict is not None
    assert verdict.threshold == pytest.approx(math.log(K))


def test_a_head_that_is_not_there_is_told_after_the_first_epoch() -> None:
    with pytest.raises(InputError, match="Linear has no layer 'nope'"):
        Toy().run(make(prune_after=3, head="nope"), 1)


def test_your_own_sampler_is_the_one_pruned() -> None:
    sampler = KeepSampler(N, seed=7)
    toy, denoiser = Toy(), make(sampler=sampler)
    toy.run(denoiser, 3)
    assert denoiser.sampler is sampler
    assert sampler.num_kept == N - len(toy.wrong)


def test_your_own_sampler_is_taken_also_at_the_very_end_of_an_epoch() -> None:
    """A run broken off after the last step resumes with nothing left in that epoch."""
    sampler = KeepSampler(N)
    sampler.set_epoch(0, start=N)
    assert make(sampler=sampler).sampler is sampler
