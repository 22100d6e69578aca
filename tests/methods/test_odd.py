"""ODD as a method: when it prunes, what it trains with before and after, what it saves."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.core import KeepSampler
from oddly.core.rule import PERCENTILES
from oddly.errors import InputError
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.erm import ERM
from oddly.methods.mixup import Mixup
from oddly.methods.odd import ODD, PAPER_RULE, ODDMixup

N, K = 30, 3


def make_context(epochs: int = 8, seed: int = 0) -> Context:
    model = nn.Linear(K, K)
    model.weight.data = 4 * torch.eye(K)
    nn.init.zeros_(model.bias)
    given = make_batch().labels
    return Context(model, KeepSampler(N, seed), N, K, epochs, seed, given_labels=given)


def make_batch() -> Batch:
    """All examples at once; example 0 has a wrong label."""
    true = torch.arange(N) % K
    labels = true.clone()
    labels[0] = 1
    return Batch(torch.arange(N), 4 * F.one_hot(true, K).float(), labels)


def run(method: Method, context: Context, epochs: int) -> list[StepOutput]:
    """One step per epoch, as the engine would call it."""
    outputs = []
    for _ in range(epochs):
        method.begin_epoch(context)
        outputs.append(method.loss(context.model, make_batch()))
        context.epoch += 1
        method.end_epoch(context)
    return outputs


@dataclass
class Diary(ERM):
    """ERM that writes down what it is asked to do."""

    entries: list[str] = field(default_factory=list)

    def setup(self, context: Context) -> None:
        self.entries.append("setup")

    def begin_epoch(self, context: Context) -> None:
        self.entries.append(f"begin {context.epoch}")

    def end_epoch(self, context: Context) -> None:
        self.entries.append(f"end {context.epoch}")


@dataclass
class Notes(ERM):
    """ERM that keeps the labels it trained with."""

    labels: list[torch.Tensor] = field(default_factory=list)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        self.labels.append(batch.labels)
        return super().loss(model, batch)


@pytest.mark.parametrize(
    ("epochs", "expected"), [(200, 75), (40, 15), (96, 36), (8, 3), (2, 1), (1, 1)]
)
def test_the_paper_prunes_after_three_eighths_by_default(epochs: int, expected: int) -> None:
    method = ODD(counterfactual="weights")
    method.setup(make_context(epochs))
    assert method.denoiser.rule.prune_after == expected


def test_by_default_e_is_found_from_the_sentinels() -> None:
    """The model tells right from wrong from the start, so E is the earliest: 8 / 3."""
    context, method = make_context(8), ODD(counterfactual="sentinels")
    method.setup(context)
    assert method.denoiser.sentinels is not None
    run(method, context, 2)
    assert method.verdict is None
    run(method, context, 1)
    assert method.verdict is not None
    assert (method.verdict.epoch, method.verdict.percentile) == (3, 6.0)
    assert method.verdict.counterfactual.source == "sentinels"


@pytest.mark.parametrize(("num_examples", "planted"), [(99, False), (100, True)])
def test_with_too_few_examples_made_up_labels_decide(num_examples: int, planted: bool) -> None:
    sampler = KeepSampler(num_examples)
    method = ODD()
    method.setup(Context(nn.Linear(K, K), sampler, num_examples, K, epochs=8, seed=0))
    assert (method.denoiser.sentinels is not None) == planted
    assert (method.denoiser.wrong_labels is None) == planted


def test_the_papers_rule_undoes_every_departure() -> None:
    context, method = make_context(8), ODD(**PAPER_RULE)  # type: ignore[arg-type]
    method.setup(context)
    denoiser = method.denoiser
    assert (denoiser.rule.prune_after, denoiser.rule.percentile) == (3, 10.0)
    assert (denoiser.sentinels, denoiser.ledger.statistic) == (None, "last")


def test_prunes_after_the_last_epoch_at_the_latest() -> None:
    ODD(prune_after=8).setup(make_context(8))
    with pytest.raises(InputError, match="prune_after = 9 is beyond the 8 epochs"):
        ODD(prune_after=9).setup(make_context(8))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ODD(prune_after=0), "prune_after must be at least 1"),
        (ODD(percentile=-1), "percentile must be within"),
        (ODD(target_precision=0.9), "target_precision needs sentinels"),  # N = 30
        (ODD(counterfactual="sentinels", target_precision=9.0), "target_precision must be between"),
        (ODD(counterfactual="wrong_label", statistic="ema"), "only works with statistic last"),
        (ODD(statistic="max"), "statistic must be one of"),
        (ODD(counterfactual="wishes"), "counterfactual must be one of"),
        (ODD(counterfactual="weights", head="nope"), "nope"),
    ],
)
def test_bad_settings_stop_before_the_first_epoch(method: ODD, message: str) -> None:
    with pytest.raises(InputError, match=message):
        method.setup(make_context())


def test_settings_reach_the_denoiser() -> None:
    context = make_context(seed=6)
    context.model = nn.ModuleDict({"head": nn.ModuleDict({"fc": nn.Linear(K, K)})})
    method = ODD(4, 25.0, "weights", "last", None, 123, "head.fc", True)
    method.setup(context)
    denoiser = method.denoiser
    assert (denoiser.rule.prune_after, denoiser.rule.percentile, denoiser.draws) == (4, 25.0, 123)
    assert (denoiser.head, denoiser.strict, denoiser.seed) == ("head.fc", True, 6)
    assert (denoiser.ledger.statistic, denoiser.sentinels) == ("last", None)
    assert denoiser.sampler is context.sampler
    assert (denoiser.ledger.num_examples, denoiser.num_classes) == (N, K)


def test_a_target_precision_reaches_the_denoiser() -> None:
    method = ODD(counterfactual="sentinels", target_precision=0.8)
    method.setup(make_context())
    assert method.denoiser.rule.target_precision == 0.8
    assert method.denoiser.rule.percentile is None


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_finds_the_wrong_label_and_prunes_the_runs_sampler(counterfactual: str) -> None:
    context, method = make_context(), ODD(prune_after=2, counterfactual=counterfactual)
    method.setup(context)
    run(method, context, 1)
    assert method.verdict is None
    assert len(context.sampler) == N
    run(method, context, 1)
    assert method.verdict is not None
    assert method.verdict.removed.tolist() == [0]
    assert sorted(context.sampler) == list(range(1, N))
    assert method.extra_seconds > 0


def test_what_a_person_decided_stays_in_training() -> None:
    """Example 0 has a wrong label, but somebody vouches for it."""
    method, context = ODD(prune_after=2, counterfactual="weights", percentile=10.0), make_context()
    context.decided = torch.arange(N) == 0
    method.setup(context)
    run(method, context, 8)
    assert method.verdict is not None and method.verdict.scores[0] >= method.verdict.threshold
    assert method.verdict.keep.all() and context.sampler.num_kept == N


def test_no_picture_under_two_labels_stays_in_training() -> None:
    """3 and 5 are one picture; of 6 and 7 somebody vouches for 7. The verdict is as without.

    8, 11 and 12 are one too, and 12 is outvoted; of 0 and 2 the former is removed anyway.
    """
    context = make_context()
    method = ODD(prune_after=2, counterfactual="weights", percentile=10.0)
    pictures = {3: 0, 5: 0, 6: 1, 7: 1, 8: 2, 11: 2, 12: 2, 0: 3, 2: 3}
    context.pictures = torch.tensor([pictures.get(i, -1) for i in range(N)])
    context.decided = torch.arange(N) == 7
    method.setup(context)
    run(method, context, 1)
    assert len(context.sampler) == N
    run(method, context, 1)
    assert method.verdict is not None and method.verdict.removed.tolist() == [0]
    left = sorted(set(range(N)) - {0, 3, 5, 6, 12})
    assert sorted(context.sampler) == left
    method.begin_stage(context)
    assert sorted(context.sampler) == left


def test_a_class_of_nothing_but_such_pictures_stays_in_training() -> None:
    context, labels = make_context(), make_batch().labels
    method = ODD(prune_after=2, counterfactual="weights", percentile=10.0)
    method.setup(context)
    context.pictures, context.decided = torch.arange(N) // 3, labels == 2  # 4 and 5, …
    context.pictures[labels == 0] = -1
    run(method, context, 2)
    assert method.verdict is not None and method.verdict.removed.tolist() == [0]
    assert sorted(context.sampler) == list(range(1, N))
    one, *others = (labels == 1).nonzero().flatten()[1:].tolist()  # 0 is removed
    context.pictures[one] = -1
    method.leave_copies(context)
    assert not set(others) & set(context.sampler) and one in set(context.sampler)


def test_where_nearly_every_picture_has_two_labels_training_goes_on() -> None:
    context = make_context()
    method = ODD(prune_after=2, counterfactual="weights", percentile=10.0)
    context.pictures = torch.where(torch.arange(N) > 3, torch.arange(N) // 2, -1)
    method.setup(context)
    run(method, context, 2)
    assert sorted(context.sampler) == list(range(1, N))


def test_before_and_after_take_turns() -> None:
    before, after, context = Diary(), Diary(), make_context()
    method = ODD(prune_after=2, before=before, after=after)
    method.setup(context)
    run(method, context, 3)
    assert before.entries == ["setup", "begin 0", "end 1", "begin 1", "end 2"]
    assert after.entries == ["setup", "begin 2", "end 3"]


def test_the_loss_is_the_inner_methods() -> None:
    context, method = make_context(), ODD(prune_after=1, counterfactual="weights")
    method.setup(context)
    outputs = run(method, context, 2)
    expected = ERM().loss(context.model, make_batch())
    for output in outputs:
        assert torch.equal(output.loss, expected.loss)
        assert output.logits is not None


def test_sentinels_train_with_their_planted_label_until_the_verdict() -> None:
    context, method = (
        make_context(),
        ODD(prune_after=2, counterfactual="sentinels", before=Notes(), after=Notes()),
    )
    method.setup(context)
    run(method, context, 4)
    sentinels = method.denoiser.sentinels
    assert sentinels is not None
    planted = make_batch().labels
    planted[sentinels.indices] = (planted[sentinels.indices] + sentinels.shifts) % K
    assert isinstance(method.before, Notes) and isinstance(method.after, Notes)
    assert [labels.tolist() for labels in method.before.labels] == [planted.tolist()] * 2
    assert [labels.tolist() for labels in method.after.labels] == [make_batch().labels.tolist()] * 2
    assert method.verdict is not None
    assert method.verdict.labels.tolist() == make_batch().labels.tolist()  # the given ones


def test_mixup_comes_only_after_pruning() -> None:
    context, method = make_context(), ODDMixup(prune_after=2, alpha=0.4)
    method.setup(context)
    assert method.before == ERM()
    assert method.after == Mixup(0.4)
    assert ODDMixup(alpha=0.4, cut=True, smoothing=0.1).after == Mixup(0.4, True, 0.1)
    mixed = [output.logits is None for output in run(method, context, 4)]
    assert mixed == [False, False, True, True]


def test_mixups_alpha_is_checked() -> None:
    with pytest.raises(InputError, match="alpha must be at least 0"):
        ODDMixup(alpha=-1.0)


@pytest.mark.parametrize("counterfactual", PERCENTILES)
@pytest.mark.parametrize("done", [1, 3])
def test_resumed_from_a_file_it_ends_alike(done: int, counterfactual: str) -> None:
    unbroken, broken, resumed = (
        ODD(prune_after=2, counterfactual=counterfactual) for _ in range(3)
    )
    contexts = [make_context() for _ in range(3)]
    for method, context in zip((unbroken, broken, resumed), contexts, strict=True):
        method.setup(context)
    run(unbroken, contexts[0], 4)
    run(broken, contexts[1], done)
    file = io.BytesIO()
    torch.save(broken.state_dict(), file)
    file.seek(0)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    contexts[2].epoch = done
    run(resumed, contexts[2], 4 - done)
    assert resumed.verdict is not None
    assert unbroken.verdict is not None
    assert torch.equal(resumed.verdict.keep, unbroken.verdict.keep)
    assert torch.equal(resumed.verdict.losses, unbroken.verdict.losses)
    assert list(contexts[2].sampler) == list(contexts[0].sampler)


def test_a_second_setup_starts_afresh() -> None:
    method, context = ODD(prune_after=1), make_context()
    method.setup(context)
    run(method, context, 1)
    method.setup(make_context())
    assert method.verdict is None


def planted_by(method: ODD) -> Tensor:
    """The labels of the next epoch."""
    method.begin_epoch(make_context())
    assert method.planted is not None
    return method.planted


def test_what_is_planted_follows_the_state_that_is_loaded() -> None:
    """Another seed would plant others than those whose scores lie in the checkpoint."""
    saved, resumed = (ODD(counterfactual="sentinels") for _ in range(2))
    saved.setup(make_context(seed=0))
    resumed.setup(make_context(seed=5))
    assert not torch.equal(planted_by(saved), planted_by(resumed))
    resumed.load_state_dict(saved.state_dict())
    assert torch.equal(planted_by(saved), planted_by(resumed))
    assert saved.denoiser.sentinels is not None
    places = (planted_by(saved) != make_batch().labels).nonzero().flatten()
    assert torch.equal(places, saved.denoiser.sentinels.indices)
