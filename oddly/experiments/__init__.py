"""All tables and figures of the paper by name; to add one, write its file and list it here."""

from __future__ import annotations

from oddly.experiments import (
    figure2_cifar100_mislabelled,
    figure3_imagenet,
    figure3_loss_histogram,
    figure4_choosing_e_and_p,
    figure7_ablations,
    figure10_noise_amount,
    figure11_precision_recall,
    learning_rate,
    recipe,
    table1_cifar_uniform,
    table2_cifar_merged,
    table3_imagenet,
    table4_webvision,
    table5_clothing1m,
    table6_imagenet_removed,
    table7_webvision_percentile,
)
from oddly.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        table1_cifar_uniform.EXPERIMENT,
        table2_cifar_merged.EXPERIMENT,
        table3_imagenet.EXPERIMENT,
        table4_webvision.EXPERIMENT,
        table5_clothing1m.EXPERIMENT,
        table6_imagenet_removed.EXPERIMENT,
        table7_webvision_percentile.EXPERIMENT,
        figure2_cifar100_mislabelled.EXPERIMENT,
        figure3_loss_histogram.EXPERIMENT,
        figure3_imagenet.EXPERIMENT,
        figure4_choosing_e_and_p.EXPERIMENT,
        figure7_ablations.EXPERIMENT,
        figure10_noise_amount.EXPERIMENT,
        figure11_precision_recall.EXPERIMENT,
        learning_rate.EXPERIMENT,
        recipe.EXPERIMENT,
    )
}

__all__ = ["EXPERIMENTS", "Experiment"]
