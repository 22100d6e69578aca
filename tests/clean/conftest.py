"""Small folders of pictures that a network of any size can tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


def write_pictures(
    root: Path, per_class: int, side: int = 12, wrong: int = 0, seed: int = 0
) -> dict[str, str]:
    """Noisy squares of three colours in class folders, `wrong` of each class in the next one's.

    Returns the true class of each id.
    """
    random = np.random.RandomState(seed)
    truth = {}
    names = list(COLOURS)
    for k, name in enumerate(names):
        for i in range(per_class):
            given = names[(k + 1) % len(names)] if i < wrong else name
            path = root / given / f"{name}{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.array(COLOURS[name]) + random.randint(-40, 40, (side, side, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(path)
            truth[f"{given}/{name}{i}.png"] = name
    return truth


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """36 pictures of three classes, all labels right."""
    write_pictures(tmp_path / "photos", 12)
    return tmp_path / "photos"


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of weights for timm's `test_efficientnet`, which takes milliseconds."""
    import timm

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "tiny.pth"
    torch.save(timm.create_model("test_efficientnet").state_dict(), path)
    return path
