"""MNIST and Fashion-MNIST: their official files, and the noise they were run with."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from evidence.labels import Labels, confuse, replace_some
from oddly.data.noise import instance
from oddly.errors import InputError

EXAMPLES, DRAW_SEED = 6_000, 5


@dataclass(frozen=True)
class Images:
    """A held-out set and the noise it was run with."""

    classes: tuple[str, ...]
    confused: Mapping[int, int]
    """Which class 30 % of these are called."""
    kinds: tuple[str, ...]
    seeds: int
    seed: int
    """Of the noise; the run's is added."""
    cleanlab: bool = False


RANDOM, BY_IMAGE = ("uniform10", "uniform20", "uniform40"), ("instance20", "instance40")
BY_RULE = ("next20", "next40")
CLOTHES = "tshirt trouser pullover dress coat sandal shirt sneaker bag boot"
SETS = {
    "fashion": Images(
        classes=tuple(CLOTHES.split()),
        confused={0: 6, 6: 0, 2: 4, 4: 2, 5: 7, 7: 9},
        kinds=(*RANDOM, "asymmetric30", *BY_IMAGE, *BY_RULE, "clean"),
        seeds=3,
        seed=1000,
        cleanlab=True,
    ),
    "mnist": Images(
        classes=tuple(f"d{digit}" for digit in range(10)),
        confused={4: 9, 7: 1, 3: 8, 5: 6, 9: 4, 2: 7},
        kinds=("uniform5", *RANDOM, "asymmetric30", *BY_IMAGE, *BY_RULE, "clean"),
        seeds=2,
        seed=50,
    ),
}


def read(folder: Path) -> tuple[NDArray[np.uint8], Labels]:
    """Images (N, 28, 28) and their labels (N,)."""
    if (folder / "0.json").exists():
        parts = [read_json(folder / f"{k}.json") for k in range(10)]
        labels = np.repeat(np.arange(10), [len(part) for part in parts])
        return np.concatenate(parts), labels
    images = read_idx(folder, "train-images-idx3-ubyte")
    return images, read_idx(folder, "train-labels-idx1-ubyte").astype(np.int64)


def read_json(path: Path) -> NDArray[np.uint8]:
    """A class of an npm package: all pixels in a row, from 0 to 1, or bytes image by image."""
    data = json.loads(path.read_text())["data"]
    if isinstance(data[0], list):
        whole = [image for image in data if len(image) == 28 * 28]  # a few are empty
        return np.array(whole, np.uint8).reshape(-1, 28, 28)
    return (255 * np.array(data).reshape(-1, 28, 28)).round().astype(np.uint8)


def read_idx(folder: Path, name: str) -> NDArray[np.uint8]:
    """An IDX file: two zeros, the type (8: bytes), the number of axes, their lengths, the bytes."""
    packed = folder / f"{name}.gz"
    if not packed.exists() and not (folder / name).exists():
        raise InputError(f"{packed} is not there; FOLDER must hold the official files")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else b""
    content = content or (folder / name).read_bytes()
    shape = np.frombuffer(content, ">i4", content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def give_labels(
    kind: str, true: Labels, images: Images, seed: int, pixels: NDArray[np.uint8] | None = None
) -> Labels:
    """Wrong ones among the true; `pixels` (N, 28, 28) for noise that depends on the image."""
    rng = np.random.default_rng(images.seed + seed)
    if kind.startswith("uniform"):
        return replace_some(true, 10, int(kind.removeprefix("uniform")) / 100, rng)
    if kind.startswith("next"):
        called = {k: (k + 1) % 10 for k in range(10)}
        return confuse(true, called, int(kind.removeprefix("next")) / 100, rng)
    if kind.startswith("instance"):
        assert pixels is not None
        generator = torch.Generator().manual_seed(images.seed + seed)
        share, shown = int(kind.removeprefix("instance")) / 100, torch.from_numpy(pixels[:, None])
        mean, std = (float(each) / 255 for each in (pixels.mean(), pixels.std()))
        given = instance(torch.from_numpy(true), 10, share, generator, shown, (mean,), (std,))
        return given.numpy()
    return confuse(true, images.confused, 0.3, rng) if kind == "asymmetric30" else true
