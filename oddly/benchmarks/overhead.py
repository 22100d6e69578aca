"""What denoising adds to plain training, in the engine's own loop.

Paper: "almost zero computational overhead compared to standard training" (abstract), no numbers.
Command: oddly benchmark overhead
Cost: well under a minute on two CPU cores or on one GPU.
Numbers to match, ours: ratio ≤ 1.02, on a CPU (ResNet-8) and on a GPU (WRN-28-10, bf16,
channels_last). What was measured: docs/default.md#what-it-costs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from torch import nn

from oddly.data.base import LabelledData
from oddly.data.synthetic import synthetic
from oddly.engine.build import Parts, build, choose_device
from oddly.engine.config import RunConfig
from oddly.engine.fast import fast_model
from oddly.engine.loop import train_epoch
from oddly.engine.outcome import describe_device
from oddly.engine.randomness import fork_randomness
from oddly.engine.watch import Watcher
from oddly.records import environment

CLASSES, SIDE, NOISE = 10, 32, 0.4
WARM_UP_STEPS = 5


@dataclass(frozen=True)
class Workload:
    """What is trained, and for how long."""

    model: str
    steps: int
    """Per epoch."""
    rounds: int = 2
    """Independent runs of each method, for the interleaved ratio's sake."""


WORKLOADS = {"cuda": Workload("wrn-28-10", steps=100), "cpu": Workload("resnet8", steps=50)}


@dataclass
class Trial:
    """One method's run, timed epoch by epoch."""

    parts: Parts
    model: nn.Module = field(init=False)
    epoch_seconds: list[float] = field(default_factory=list)
    prune_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.model = fast_model(self.parts)

    def run_epoch(self, epoch: int) -> None:
        """As the engine does it, without test set and run folder."""
        method, context = self.parts.method, self.parts.context
        begun = time.perf_counter()
        context.epoch = epoch
        method.begin_epoch(context)
        train_epoch(self.parts, self.model, epoch, Watcher())  # ends when the device is done
        observed = method.extra_seconds
        context.epoch = epoch + 1
        method.end_epoch(context)
        self.prune_seconds += method.extra_seconds - observed  # waits for the device as well
        self.epoch_seconds.append(time.perf_counter() - begun)


def measure(
    device: str = "auto",
    model: str | None = None,
    steps: int | None = None,
    batch_size: int = 128,
    prune_after: int = 2,
    rounds: int | None = None,
) -> dict[str, Any]:
    """The cost of observing and pruning, as a share of plain training up to and including E.

    `ratio` is 1 + the time spent inside the denoiser (device events on a GPU) / plain training's
    time for the same steps. `interleaved_ratio` is the median over pairs of whole epochs, with
    and without it, run in turn; it includes everything, but also noise from a busy machine.
    """
    chosen = choose_device(device)
    usual = WORKLOADS.get(chosen.type, WORKLOADS["cpu"])
    work = Workload(model or usual.model, steps or usual.steps, rounds or usual.rounds)
    data = make_data(work.steps * batch_size)
    base = RunConfig(
        data.name,
        model=work.model,
        epochs=prune_after,
        batch_size=batch_size,
        learning_rate=0.05,
        noise=NOISE,
        device=chosen.type,
    )
    with fork_randomness():
        warm_up(base, WARM_UP_STEPS * batch_size)
        pairs = [run_pair(base, data, prune_after) for _ in range(work.rounds)]
    return {
        **summarise(pairs, work.steps),
        "examples": len(data.train),
        **vars(work),
        "batch_size": batch_size,
        "prune_after": prune_after,
        "precision": "bf16" if pairs[0][0].parts.bf16 else "fp32",
        **environment(describe_device(chosen)),
    }


def make_data(examples: int) -> LabelledData:
    """Random pictures, never zeros: those would train faster on hardware that likes zeros.

    Learnable ones, since a verdict that removes everything is refused; without augmentation,
    which would only make plain training slower and the ratio look better.
    """
    data = synthetic(CLASSES, -(-examples // CLASSES), SIDE, test_per_class=1, spread=20.0)
    return replace(data, test=None)


def warm_up(base: RunConfig, examples: int) -> None:
    """A short run of each method: first calls choose kernels and fill caches."""
    data = make_data(examples)
    settings = {"prune_after": 1, "percentile": 100.0}  # too short to learn: remove nothing
    for method in ("erm", "odd"):
        config = replace(base, method=method, epochs=1, settings=settings)
        Trial(build(config, data)).run_epoch(0)


def run_pair(base: RunConfig, data: LabelledData, prune_after: int) -> tuple[Trial, Trial]:
    """Plain training and ODD from the same start, an epoch of one after an epoch of the other."""
    erm = Trial(build(replace(base, method="erm"), data))
    odd = Trial(build(replace(base, method="odd", settings={"prune_after": prune_after}), data))
    for epoch in range(prune_after):
        # They take turns in going first, so that a machine that slows down favours neither.
        for trial in (erm, odd) if epoch % 2 == 0 else (odd, erm):
            trial.run_epoch(epoch)
    return erm, odd


def summarise(pairs: list[tuple[Trial, Trial]], steps: int) -> dict[str, float]:
    epochs = [
        (plain, denoised)
        for erm, odd in pairs
        for plain, denoised in zip(erm.epoch_seconds, odd.epoch_seconds, strict=True)
    ]
    erm_seconds = sum(plain for plain, _ in epochs)
    denoise_seconds = sum(odd.parts.method.extra_seconds for _, odd in pairs)
    prune_seconds = sum(odd.prune_seconds for _, odd in pairs)
    observe_seconds = denoise_seconds - prune_seconds
    return {
        "ratio": 1 + denoise_seconds / erm_seconds,
        "interleaved_ratio": median(denoised / plain for plain, denoised in epochs),
        "denoise_seconds": denoise_seconds,
        "erm_seconds": erm_seconds,
        "step_milliseconds": 1e3 * erm_seconds / (len(epochs) * steps),
        "observe_microseconds": 1e6 * observe_seconds / (len(epochs) * steps),
        "prune_milliseconds": 1e3 * prune_seconds / len(pairs),
    }
