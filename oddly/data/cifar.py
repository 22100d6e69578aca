"""CIFAR-10 and CIFAR-100 from the official python folders, each file checked before it is read."""

from __future__ import annotations

import hashlib
import importlib
import io
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oddly.data.base import Augment, DataOptions, LabelledData, Recipe, Split, find_folder
from oddly.errors import InputError, first_line

RECIPE = Recipe(model="wrn-28-10", epochs=200, batch_size=128, learning_rate=0.1, weight_decay=5e-4)


@dataclass(frozen=True)
class _Official:
    """One of the two datasets: its folder, and the published md5 of every file in it."""

    name: str
    folder: str
    meta: tuple[str, str]
    train: Sequence[tuple[str, str]]
    test: tuple[str, str]
    names_key: str
    labels_key: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


CIFAR10 = _Official(
    name="cifar10",
    folder="cifar-10-batches-py",
    meta=("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    train=(
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    ),
    test=("test_batch", "40351d587109b95175f43aff81a1287e"),
    names_key="label_names",
    labels_key="labels",
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
)
CIFAR100 = _Official(
    name="cifar100",
    folder="cifar-100-python",
    meta=("meta", "7973b15100ade9c7d40fb424638fde48"),
    train=(("train", "16019d7e3df5f24257cddd939b257f8d"),),
    test=("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    names_key="fine_label_names",
    labels_key="fine_labels",
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)
CIFAR10_CONFUSIONS = {
    "truck": "automobile",
    "bird": "airplane",
    "deer": "horse",
    "cat": "dog",
    "dog": "cat",
}


def load_cifar10(options: DataOptions) -> LabelledData:
    """CIFAR-10; asymmetric noise confuses the usual five classes."""
    return _load(CIFAR10, options)


def load_cifar100(options: DataOptions) -> LabelledData:
    """CIFAR-100; asymmetric noise changes a label to the next class of the same super-class."""
    return _load(CIFAR100, options)


def _load(official: _Official, options: DataOptions) -> LabelledData:
    folder = find_folder(official.folder, options)
    if options.download:
        _download(official, folder)
    names: list[str] = [
        name.decode("ascii") for name in _read(folder, official.meta)[official.names_key]
    ]
    train, coarse = _read_split("train", folder, official, official.train, len(names))
    test, _ = _read_split("test", folder, official, [official.test], len(names))
    confused_with = _confused_by_name(names) if coarse is None else _next_inside(coarse)
    return LabelledData(
        name=official.name,
        class_names=names,
        train=train,
        test=test,
        true_labels=train.labels,
        image_shape=(3, 32, 32),
        mean=official.mean,
        std=official.std,
        augment=Augment(pad=4, flip=True),
        recipe=RECIPE,
        confused_with=confused_with,
    )


def _download(official: _Official, folder: Path) -> None:
    """Download with torchvision, unless all files exist with the right checksum."""
    files = [official.meta, *official.train, official.test]
    if all(_is_sound(folder / name, md5) for name, md5 in files):
        return
    try:
        datasets = importlib.import_module("torchvision.datasets")
    except ImportError:
        raise InputError(
            "--download needs torchvision (pip install timm torchvision); or unpack the official"
            f" archive into {folder.parent}"
        ) from None
    fetch = {"cifar10": datasets.CIFAR10, "cifar100": datasets.CIFAR100}[official.name]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fetch(str(folder.parent), download=True)
    except (OSError, RuntimeError, EOFError) as error:  # no network, full disk, broken archive
        raise InputError(f"could not download {official.name}: {first_line(error)}") from None


def _is_sound(file: Path, md5: str) -> bool:
    return file.is_file() and _md5(file.read_bytes()) == md5


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _read(folder: Path, file: tuple[str, str]) -> Mapping[str, Any]:
    """The content of a file, unpickled only if its md5 is the published one."""
    path = folder / file[0]
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            reason = "is missing"
        raise InputError(
            f"{path} {reason}; use --download to get it, or --data-dir for the folder that"
            f" contains {folder.name}/"
        ) from None
    if _md5(content) != file[1]:
        raise InputError(
            f"{path} is corrupt ({len(content):,} bytes, wrong md5);"
            " use --download to get it again, or --data-dir for another copy"
        )
    loaded = _CifarUnpickler(io.BytesIO(content), encoding="bytes").load()
    return {key.decode("ascii"): value for key, value in loaded.items()}


class _CifarUnpickler(pickle.Unpickler):
    """Allows only the three names these files use, under their paths in old NumPy."""

    def find_class(self, module: str, name: str) -> Any:
        known = {"_reconstruct": _new_array, "ndarray": np.ndarray, "dtype": _new_dtype}
        if module.split(".")[0] == "numpy" and name in known:
            return known[name]
        raise pickle.UnpicklingError(f"unexpected {module}.{name}")


def _new_array(kind: object, shape: tuple[int, ...], code: bytes) -> np.ndarray[Any, Any]:
    """An empty array for the unpickler to fill."""
    return np.ndarray(shape, np.dtype(np.uint8))


def _new_dtype(code: bytes, align: int, copy: int) -> np.dtype[Any]:
    return np.dtype(code.decode("ascii"))


def _read_split(
    name: str,
    folder: Path,
    official: _Official,
    files: Sequence[tuple[str, str]],
    num_classes: int,
) -> tuple[Split, Tensor | None]:
    """All images in the order of the files; and the super-class of each class, if there are any."""
    pixels: list[Tensor] = []
    labels: list[int] = []
    super_class: Tensor | None = None
    for file in files:
        content = _read(folder, file)
        pixels.append(torch.from_numpy(content["data"]).view(-1, 3, 32, 32))
        labels += content[official.labels_key]
        if "coarse_labels" in content:
            super_class = torch.empty(num_classes, dtype=torch.int64)
            super_class[torch.tensor(labels)] = torch.tensor(content["coarse_labels"])
    images = pixels[0] if len(pixels) == 1 else torch.cat(pixels)
    ids = [f"{name}/{i:05d}" for i in range(len(labels))]
    return Split(images, torch.tensor(labels, dtype=torch.int64), ids), super_class


def _confused_by_name(names: Sequence[str]) -> list[int]:
    return [names.index(CIFAR10_CONFUSIONS.get(name, name)) for name in names]


def _next_inside(super_class: Tensor) -> list[int]:
    """For each class, the next one of its super-class by index; after the last, the first."""
    confused_with = list(range(len(super_class)))
    for group in range(int(super_class.max()) + 1):
        members = torch.nonzero(super_class == group).flatten()
        for member, following in zip(members.tolist(), members.roll(-1).tolist(), strict=True):
            confused_with[member] = following
    return confused_with
