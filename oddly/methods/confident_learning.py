"""Confident learning (Northcutt, Jiang, Chuang 2021) through the cleanlab package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.errors import InputError, unknown_name
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement

FILTERS = (
    *("prune_by_class", "prune_by_noise_rate", "both", "confident_learning"),
    *("predicted_neq_given", "low_normalized_margin", "low_self_confidence"),
)
"""cleanlab's rules; checked here because cleanlab would only fail after all folds."""


@dataclass
class ConfidentLearning(Method):
    """Cross-validated probabilities, cleanlab's `find_label_issues` on them, training on the rest.

    Each of k networks is trained without one fold and predicts it; N x K floats. The confident
    joint C[y][ŷ] counts examples whose probability of ŷ reaches the mean of those labelled ŷ;
    cleanlab calibrates and prunes it.
    """

    folds: int = 5
    """k: networks trained before the last one."""
    filter_by: str = "prune_by_noise_rate"
    """cleanlab's rule."""

    state: ClassVar[Sequence[str]] = ("out_of_sample", "judgement")

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InputError(f"confident_learning needs at least 2 folds, got {self.folds}")
        if self.filter_by not in FILTERS:
            raise unknown_name("filter_by", self.filter_by, FILTERS)

    def stages(self, epochs: int) -> Sequence[Stage]:
        share = (self.folds - 1) / self.folds
        folds = [
            Stage(f"fold {k + 1}", epochs, fresh=True, passes=share) for k in range(self.folds)
        ]
        return (*folds, Stage("kept", epochs, fresh=True))

    def setup(self, context: Context) -> None:
        import_cleanlab()  # fail now, not after k trainings
        if context.num_examples < self.folds:
            raise InputError(f"{context.num_examples} examples are too few for {self.folds} folds")
        self.out_of_sample = context.table(context.num_classes)

    def held_out(self, context: Context) -> Tensor:
        """Indices of the current stage's fold."""
        generator = torch.Generator().manual_seed(context.seed)
        order = torch.randperm(context.num_examples, generator=generator)
        return order[context.stage_number :: self.folds]

    def begin_stage(self, context: Context) -> None:
        if context.stage.name == "kept":
            assert self.judgement is not None
            context.sampler.set_keep(self.judgement.keep)
            return
        keep = torch.ones(context.num_examples, dtype=torch.bool)
        keep[self.held_out(context)] = False
        context.sampler.set_keep(keep)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        return StepOutput(F.cross_entropy(logits, batch.labels), logits)

    def end_stage(self, context: Context) -> None:
        if context.stage.name == "kept":
            return
        fold = self.held_out(context).to(context.device)
        self.out_of_sample[fold] = context.probabilities(context.model, fold)
        if context.stage_number == self.folds - 1:
            self.judgement = self.judge(context)

    def judge(self, context: Context) -> Judgement:
        p = self.out_of_sample.double().cpu()
        labels = context.given_labels.cpu()
        issues = import_cleanlab().find_label_issues(
            labels.numpy(),
            (p / p.sum(1, keepdim=True)).numpy(),
            filter_by=self.filter_by,
            n_jobs=1,
        )
        scores = 1 - p.gather(1, labels[:, None]).squeeze(1)
        rule = f"cleanlab's {self.filter_by}"
        return Judgement.by_mask(~torch.from_numpy(issues), scores, context.epoch, rule)


def import_cleanlab() -> Any:
    try:
        from cleanlab import filter
    except ModuleNotFoundError:
        raise InputError(
            'confident_learning needs the package cleanlab: pip install "oddly[bench]"'
        ) from None
    return filter
