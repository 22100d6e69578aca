"""Every table and figure of the paper by name; to add one, write its file and list it here."""

from __future__ import annotations

from oddly.experiments import table1_cifar_uniform as table1
from oddly.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (table1,)
}

__all__ = ["EXPERIMENTS", "Experiment"]
