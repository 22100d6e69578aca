"""Densities and clusters on drawn examples."""

from __future__ import annotations

import numpy as np
import torch

from oddly.methods.curriculum import Curriculum, cluster
from tests.methods.toy import go_to, make_context


def test_densities_against_a_loop() -> None:
    features = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    distances = np.linalg.norm(features.numpy()[:, None] - features.numpy()[None], axis=2)
    cut_off = np.sort(distances.flatten())[round(0.6 * 900) - 1]
    expected = (distances < cut_off).sum(1) - 1
    found = Curriculum().densities(features)
    assert np.abs(found.numpy() - expected).max() <= 1  # a pair may lie on the line itself


def test_a_drawn_example() -> None:
    """Twelve in a heap, four around it, two far away."""
    heap = 0.01 * torch.randn(12, 2, generator=torch.Generator().manual_seed(1))
    around = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    far = torch.tensor([[40.0, 0.0], [0.0, 45.0]])
    densities = Curriculum(distance_percentile=70).densities(torch.cat([heap, around, far]))
    assert densities[:12].min() > densities[12:16].max() >= densities[12:16].min() > 0
    assert densities[16:].tolist() == [0, 0]
    assert cluster(densities).tolist() == [0] * 12 + [1] * 4 + [2] * 2


def test_too_few_densities_are_one_cluster() -> None:
    assert cluster(torch.tensor([3.0, 3.0, 1.0])).tolist() == [0, 0, 0]


def test_three_stages_after_the_first() -> None:
    method, context = Curriculum(), make_context([0] * 18, 1)
    method.setup(context)
    stages = method.stages(8)
    assert [(s.name, s.epochs) for s in stages] == [
        *(("plain", 2), ("clean", 4), ("noisy", 2), ("all", 2))
    ]
    heap = 0.01 * torch.randn(12, 2, generator=torch.Generator().manual_seed(1))
    around = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    features = torch.cat([heap, around, torch.tensor([[40.0, 0.0], [0.0, 45.0]])])
    context.features = lambda _: features
    method.distance_percentile = 70
    kept = []
    for number, stage in enumerate(stages):
        go_to(context, stage, number)
        method.begin_stage(context)
        kept.append(context.sampler.num_kept)
        method.end_stage(context)
    assert kept == [18, 12, 16, 18]
    assert method.weights.tolist() == [1.0] * 12 + [0.5] * 6
    assert method.verdict is not None and method.verdict.keep.tolist() == [True] * 16 + [False] * 2
