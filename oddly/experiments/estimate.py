"""How long a training will take, estimated before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oddly.engine.build import choose_device
from oddly.engine.config import RunConfig
from oddly.experiments.results import Result, Store
from oddly.methods import build_method

# Examples per second over a whole epoch, including the test; used until a speed is measured.
GUESSES = {
    "cuda": {
        "wrn-28-10": 11_000.0,
        "wrn-16-8": 25_000.0,
        "resnet18": 30_000.0,
        "resnet9": 60_000.0,
        "whitened": 60_000.0,
    },
    "cpu": {"resnet8": 3_000.0},
}
GUESS = 300.0
FP32_SLOWER = 2.5  # on a GPU, where everything else is bf16 (convolutions then run in TF32)
COMPILE_SECONDS = 30.0  # a first round took 20 s (throughput_wrn_28_10.json)
AROUND_SECONDS = 15.0  # before the first epoch and after the last
PRUNED_AT = 0.5  # assumed share of epochs before E, if a run finds E automatically


@dataclass(frozen=True)
class Estimator:
    """Estimates times from speeds measured on this kind of device, or else from guesses."""

    store: Store
    where: Mapping[str, Any] = field(default_factory=dict)
    """Options that say where and how fast: device, compile."""

    def seconds(self, config: RunConfig, examples: int, begin: int, until: int) -> float:
        """Seconds from `begin` finished epochs to `until`; 0 if there are none."""
        if begin >= until:
            return 0.0
        compiling = COMPILE_SECONDS if self.where.get("compile") else 0.0
        epochs = whole_epochs(config, begin, until)
        return examples * epochs / self.speed(config) + compiling + AROUND_SECONDS

    def speed(self, config: RunConfig) -> float:
        """Examples per second without pruning, with one pass per step."""
        device = choose_device(self.where.get("device", "auto")).type
        rates = [r.images_per_second for r in self.store if _alike(r, config, device)]
        measured = sorted(rate for rate in rates if rate)
        if measured:
            return measured[len(measured) // 2]
        slower = FP32_SLOWER if device == "cuda" and config.precision == "fp32" else 1.0
        return GUESSES.get(device, {}).get(config.model or "", GUESS) / slower


def whole_epochs(config: RunConfig, begin: int, until: int) -> float:
    """The cost of these epochs, in plain epochs over all examples.

    Assumes that wrong labels are removed after E, and counts a method's number of passes.
    """
    assert config.epochs
    method, _ = build_method(config.method, config.settings)
    stages = [stage for stage in method.stages(config.epochs) if stage.epochs]
    passes = sum(s.epochs * s.passes for s in stages) / sum(s.epochs for s in stages)
    pruned_at = until
    if hasattr(method, "prune_after"):
        pruned_at = method.prune_after or round(PRUNED_AT * config.epochs)
    before = max(0, min(until, pruned_at) - begin)
    return passes * (before + (until - begin - before) * (1 - config.noise))


def _alike(result: Result, config: RunConfig, device: str) -> bool:
    """Whether a stored run tells the speed; methods with several passes per step do not."""
    plain = result.summary.get("passes") in (None, result.config.get("epochs"))
    same = all(result.config.get(name) == getattr(config, name) for name in ("model", "precision"))
    return plain and same and result.environment.get("device") == device
