from __future__ import annotations

import torch

from oddly.core import find_head
from oddly.models import build_model


def test_vectors_and_maps() -> None:
    head = build_model("feature_head", 3, 5, 1)
    maps = torch.randn(2, 5, 4, 4)
    assert torch.allclose(head(maps), head(maps.mean((2, 3)))) and head(maps).shape == (2, 3)
    assert find_head(head, 3).weight.shape == (3, 5)
