"""The image folders of held_out_folders.json, out of what they were published in.

    python -m evidence.cut_folders clothing SOURCE FOLDER     # makes FOLDER/clothing

SOURCE is the repository or the folder of the package that held_out_folders.json names, unpacked.
At most 3,000 images of each are drawn with a fixed seed; those that cannot be read, or are larger
than 20 million pixels, are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from evidence.again import main
from oddly.errors import InputError

EXAMPLES, SEED, SKETCHED = 3_000, 5, 30
LARGEST = 20_000_000  # pixels
IMAGES = {".jpg", ".jpeg", ".png"}
CLIP_ART = "animals buildings education food geography office people plants recreation"
CLIP_ART += " signs_and_symbols tools transportation"


class Found(NamedTuple):
    """An image before it is drawn."""

    label: str
    name: str
    file: Path
    line: int = 0  # of a file with a sketch in each


def in_folders(*globs: str) -> Callable[[Path], list[Found]]:
    """Files in folders that are classes, the same class in several places being one."""

    def find(source: Path) -> list[Found]:
        files = [file for glob in globs for file in sorted(source.glob(glob))]
        images = [file for file in files if file.suffix.lower() in IMAGES]
        return [Found(it.parent.name, f"{it.parents[1].name}-{it.name}", it) for it in images]

    return find


def find_leaves(source: Path) -> list[Found]:
    """But for a class of two images, which no five folds can be made of."""
    leaves = in_folders("train/*/*", "test/*/*")(source)
    return [leaf for leaf in leaves if "spider mites" not in leaf.label]


def find_clip_art(source: Path) -> list[Found]:
    """By the outermost folder; not what is made by a program, unsorted or sorted by its style."""
    found = []
    for label in CLIP_ART.split():
        files = [file for file in sorted((source / label).rglob("*.png")) if not file.is_symlink()]
        found += [Found(label, "-".join(it.relative_to(source).parts[1:]), it) for it in files]
    return found


def find_sketches(source: Path) -> list[Found]:
    """All sketches, a hundred each, of thirty things."""
    files = sorted(source.glob("*.ndjson.gz"))
    drawn = sorted(np.random.default_rng(SEED).permutation(len(files))[:SKETCHED])
    lines = [(files[place], line) for place in drawn for line in range(100)]
    return [Found(file.name.partition(".")[0], f"{line}.png", file, line) for file, line in lines]


FINDERS: dict[str, Callable[[Path], list[Found]]] = {
    "clip art": find_clip_art,
    "clothing": in_folders("train/*/*", "validation/*/*", "test/*/*"),
    "hands": in_folders("Dataset/*/*"),
    "leaves": find_leaves,
    "sketches": find_sketches,
}


def save(image: Found, folder: Path) -> None:
    out = folder / image.label / image.name
    out.parent.mkdir(parents=True, exist_ok=True)
    if image.file.suffix == ".gz":
        ink = np.array(json.loads(read_lines(image.file)[image.line]), np.float32)
        Image.fromarray((255 * ink.reshape(28, 28)).round().astype(np.uint8)).save(out)
    elif is_fit(image.file):
        out.write_bytes(image.file.read_bytes())


@cache
def read_lines(file: Path) -> list[bytes]:
    return gzip.decompress(file.read_bytes()).splitlines()


def is_fit(file: Path) -> bool:
    try:
        with Image.open(file) as image:
            return image.width * image.height <= LARGEST and bool(image.load())
    except (OSError, Image.DecompressionBombError):
        return False


def cut(name: str, source: Path, folder: Path) -> None:
    found = FINDERS[name](source)
    if not found:
        raise InputError(f"{source}: no images of '{name}'")
    for place in sorted(np.random.default_rng(SEED).permutation(len(found))[:EXAMPLES]):
        save(found[place], folder / name)


def run() -> None:
    parser = argparse.ArgumentParser(description="An image folder out of what it came in.")
    parser.add_argument("name", choices=FINDERS)
    for each in ("source", "folder"):
        parser.add_argument(each, type=Path)
    cut(**vars(parser.parse_args()))


if __name__ == "__main__":
    main(run)
