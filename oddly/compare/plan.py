"""What a comparison will run: every method, every seed, how many epochs each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oddly.engine.config import MACHINE
from oddly.errors import InputError, unknown_name
from oddly.methods import METHODS, build_method


@dataclass(frozen=True)
class Plan:
    """One comparison, before its first run."""

    data: str
    methods: Sequence[str]
    seeds: int
    """Runs per method: seeds 0 … n-1, each with its own noise, initial weights and order."""
    epochs: int
    equal_cost: bool
    """Whether `epochs` is a budget of passes over the data rather than a number of epochs."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of all runs: model, noise, batch size …"""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings by method."""

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError("--methods needs at least one method, such as odd,erm")
        for name in [*self.methods, *self.settings]:
            if name not in METHODS:
                raise unknown_name("method", name, METHODS)
        if len(set(self.methods)) < len(self.methods):
            raise InputError("--methods contains a method twice")
        for name in set(self.settings) - set(self.methods):
            raise InputError(f"--set {name}.… is for a method that is not in --methods")
        if self.seeds < 1:
            raise InputError(f"--seeds must be at least 1, got {self.seeds}")

    def passes(self, method: str, epochs: int) -> float:
        """The cost of a run, in passes over the training set."""
        built, _ = build_method(method, self.settings.get(method, {}))
        return sum(stage.epochs * stage.passes for stage in built.stages(epochs))

    def epochs_of(self, method: str) -> int:
        """The epochs of a method: as many as the budget allows, at least one."""
        epochs = self.epochs
        while self.equal_cost and epochs > 1 and self.passes(method, epochs) > self.epochs + 1e-9:
            epochs -= 1
        return epochs

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without options for where it runs: compare.json may be published."""
        options = {name: value for name, value in self.options.items() if name not in MACHINE}
        return {
            **vars(self),
            "methods": list(self.methods),
            "options": options,
            "settings": {name: dict(each) for name, each in self.settings.items()},
        }
