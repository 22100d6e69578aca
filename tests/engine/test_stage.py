"""Stages that a method declares: joined by the engine, and resumed in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

import oddly
from oddly.engine import checkpoint
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.stage import find_stage
from oddly.methods import METHODS, Batch, Context, Method, Stage, StepOutput
from tests.interrupt import StopAfter

SEEN: list[tuple[str, int, int]] = []


@dataclass
class Staged(Method):
    """Three stages with everything a stage can declare, a second network, a table of its own."""

    state: ClassVar[Sequence[str]] = ("offsets", "second", "started")

    def stages(self, epochs: int) -> Sequence[Stage]:
        return (
            Stage("wide", 2, extra_outputs=1, schedule="constant"),
            Stage("again", 2, fresh=True, rate=0.5, passes=2.0),
            Stage("on", epochs),
        )

    def setup(self, context: Context) -> None:
        self.offsets = nn.Parameter(context.table(context.num_classes))
        self.second = context.new_model()
        self.started = ""

    def parameter_groups(self) -> Sequence[dict[str, Any]]:
        own = {"params": [self.offsets], "lr": 3.0, "momentum": 0.0, "weight_decay": 0.0}
        return (own | {"nesterov": False}, {"params": self.second.parameters()})

    def begin_stage(self, context: Context) -> None:
        self.started += context.stage.name + " "
        SEEN.append((context.stage.name, context.epoch, context.sampler.num_kept))
        if context.stage.name == "again":
            context.sampler.set_keep(torch.arange(context.num_examples) % 2 == 0)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)[:, :3] + self.offsets[batch.index]
        other = F.cross_entropy(self.second(batch.inputs), batch.labels)
        return StepOutput(F.cross_entropy(logits, batch.labels) + other, logits)


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "staged", Staged)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    SEEN.clear()


def test_which_epoch_belongs_to_which_stage() -> None:
    stages = (Stage("a", 2), Stage("b", 1), Stage("c", 3))
    places = [find_stage(stages, epoch) for epoch in range(6)]
    assert places == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]


def test_stages_one_after_the_other(tmp_path: Path) -> None:
    run = oddly.train("synthetic", tmp_path, method="staged", epochs=2, learning_rate=0.08)
    rates = [row["lr"] for row in run.metrics]
    # constant; cosine over 2 epochs from half the rate; cosine over 2 from the whole
    assert rates == pytest.approx([0.08, 0.08, 0.02, 0, 0.04, 0])
    assert SEEN == [("wide", 0, 120), ("again", 2, 120), ("on", 4, 120)]
    assert [row["kept"] for row in run.metrics] == [120, 120, 60, 60, 120, 120]
    assert run.summary["epochs"] == 6 and run.summary["passes"] == 2 + 4 + 2
    assert load_file(run.path / "model.safetensors")["fc.weight"].shape[0] == 3


@pytest.mark.parametrize("epoch", range(1, 6))
def test_an_interrupted_stage_goes_on_bit_for_bit(epoch: int, tmp_path: Path) -> None:
    whole = oddly.train("synthetic", tmp_path / "whole", method="staged", epochs=2)
    with pytest.raises(KeyboardInterrupt):
        oddly.train(
            "synthetic", tmp_path / "cut", method="staged", epochs=2, watcher=StopAfter(epoch)
        )
    resumed = oddly.train(out=tmp_path / "cut", resume=True)
    first, second = (load_file(run.path / "model.safetensors") for run in (whole, resumed))
    assert all(torch.equal(first[name], second[name]) for name in first)
    losses = [[row["train_loss"] for row in run.metrics] for run in (whole, resumed)]
    assert losses[0] == losses[1]


def test_a_group_with_a_rate_of_its_own_keeps_it(tmp_path: Path) -> None:
    parts = build(RunConfig("synthetic", method="staged", epochs=2))
    network, own, second = parts.optimizer.param_groups
    assert (own["lr"], own["momentum"], own["weight_decay"]) == (3.0, 0.0, 0.0)
    assert second["momentum"] == network["momentum"] == 0.9
    assert not torch.equal(next(parts.model.parameters()), second["params"][0])


def test_a_warmup_is_no_longer_than_a_stages_cycles() -> None:
    """3 epochs fit into cycles of 3 and 7, but a stage of 4 begins anew for its last epoch."""
    parts = build(RunConfig("synthetic", method="staged", epochs=10, warmup=3.0, restart=3))
    assert parts.stage_config.warmup == 2.0  # the first stage is as short as that
    parts.context.stage = Stage("longer", 4)
    assert parts.stage_config.warmup == 1.0
