"""Small generated trees of images in the layouts of ImageNet, WebVision and Clothing1M.

For `--small` and for tests. They include the odd cases: a greyscale and a CMYK file in every class,
commas and spaces in names, lists without a final newline. Classes are colours, so that a tiny
network can learn them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

SYNSETS = ("n01440764", "n01443537", "n01484850", "n01491361")
CLOTHES = ("T-Shirt", "Shirt", "Knitwear", "Chiffon")
SIDE, TRAIN, TEST = 24, 40, 8
LEVELS = (40, 100, 160, 220)


def make_all(root: Path) -> None:
    """All three, unless they are there."""
    makers = {"imagenet": make_imagenet, "webvision": make_webvision, "clothing1m": make_clothing1m}
    missing = [name for name in makers if not (root / name).exists()]
    if not missing:
        return
    root.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=root) as scratch:
        for name in missing:
            makers[name](tree := Path(scratch) / name)
            # Whole or not at all; where another process was first, its tree is as good.
            with suppress(OSError):
                tree.rename(root / name)


def make_imagenet(root: Path) -> None:
    draw = _pictures(0)
    for split, number in (("train", TRAIN), ("val", TEST)):
        for k, synset in enumerate(SYNSETS):
            for i in range(number):
                _save(root / split / synset / f"{synset}_{i}.JPEG", next(draw), k, i)


def make_webvision(root: Path) -> None:
    draw = _pictures(1)
    lines: dict[str, list[str]] = {"google": [], "flickr": [], "val": []}
    for k in range(len(SYNSETS)):
        for i in range(TRAIN):
            source = "google" if i % 2 else "flickr"
            path = f"{source}/q{k:04d}/some name, {i}.jpg"
            _save(root / path, next(draw), k, i)
            lines[source].append(f"{path} {k}")
        for i in range(TEST):
            name = f"val{k * TEST + i + 1:06d}.jpg"
            _save(root / "val_images_256" / name, next(draw), k, i)
            lines["val"].append(f"{name} {k}")
    info = root / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "synsets.txt").write_text("".join(f"{name} some, words\n" for name in SYNSETS))
    (info / "val_filelist.txt").write_text("\n".join(lines["val"]))
    for source in ("google", "flickr"):
        (info / f"train_filelist_{source}.txt").write_text("\n".join(lines[source]) + "\n")


def make_clothing1m(root: Path) -> None:
    draw = _pictures(2)
    keys: dict[str, list[str]] = {"noisy_train": []}
    keys |= {f"clean_{split}": [] for split in ("train", "val", "test")}
    labels: dict[str, list[str]] = {"noisy": [], "clean": []}
    for k in range(len(CLOTHES)):
        for split, number in (("noisy_train", TRAIN), ("clean_train", TRAIN // 2)):
            for i in range(number):
                key = f"images/{k}/{i}/{split},{i}.jpg"
                _add(root, key, split, k, i, keys, labels, next(draw))
        for split in ("clean_val", "clean_test"):
            for i in range(TEST):
                key = f"images/{k}/{i}/{split},{i}.jpg"
                _add(root, key, split, k, i, keys, labels, next(draw))
    (root / "category_names_eng.txt").write_text("\n".join(CLOTHES))
    for name, listed in keys.items():
        (root / f"{name}_key_list.txt").write_text("\n".join(listed))  # no final newline
    for kind, known in labels.items():
        (root / f"{kind}_label_kv.txt").write_text("\n".join(known) + "\n")


def _add(
    root: Path,
    key: str,
    split: str,
    k: int,
    i: int,
    keys: dict[str, list[str]],
    labels: dict[str, list[str]],
    pixels: np.ndarray,
) -> None:
    _save(root / key, pixels, k, i)
    keys[split].append(key)
    labels[split.split("_")[0]].append(f"{key} {k}")


def _pictures(seed: int) -> Iterator[np.ndarray]:
    """Noise around zero, to be added to a class's grey level."""
    random = np.random.RandomState(seed)
    while True:
        yield random.normal(0, 25, (SIDE, SIDE + 6, 3))


def _save(path: Path, noise: np.ndarray, k: int, i: int) -> None:
    """The first of a class is greyscale, the second CMYK, as some of the real ones are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.clip(LEVELS[k] + noise, 0, 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    mode = {0: "L", 1: "CMYK"}.get(i, "RGB")
    image.convert(mode).save(path, format="JPEG")
