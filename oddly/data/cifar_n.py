"""CIFAR-10N and CIFAR-100N: official images, labels given by people (Wei et al., CC BY-NC 4.0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oddly.data.base import DataOptions, LabelledData, check_labels, data_directory
from oddly.data.cifar import load_cifar10, load_cifar100
from oddly.errors import InputError, first_few, first_line

LEAST_AGREEMENT = 0.3
"""Even the worst official labels agree with the truth in 60 %; in a wrong order, by chance only."""


@dataclass(frozen=True)
class _HumanLabels:
    """Where one set of human labels is found."""

    load_images: Callable[[DataOptions], LabelledData]
    pt_file: str
    pt_key: str
    npz_pattern: str
    npz_key: str


def _cifar10n(pt_key: str, npz_key: str) -> _HumanLabels:
    return _HumanLabels(load_cifar10, "CIFAR-10_human.pt", pt_key, "cifar10n*.npz", npz_key)


HUMAN_LABELS = {
    "cifar10n:aggregate": _cifar10n("aggre_label", "aggregate"),
    "cifar10n:random1": _cifar10n("random_label1", "random1"),
    "cifar10n:random2": _cifar10n("random_label2", "random2"),
    "cifar10n:random3": _cifar10n("random_label3", "random3"),
    "cifar10n:worst": _cifar10n("worse_label", "worst"),
    "cifar100n": _HumanLabels(
        load_cifar100, "CIFAR-100_human.pt", "noisy_label", "cifar100n*.npz", "noisy"
    ),
}


def load_cifar_n(name: str, options: DataOptions) -> LabelledData:
    """Official images and true labels, with the human labels called `name` as given labels."""
    wanted = HUMAN_LABELS[name]
    file = _find(wanted, data_directory(options), name)
    given, clean = _read(file, wanted)  # before reading 170 MB of images
    data = wanted.load_images(options)
    official = data.train.labels
    if clean is not None and not torch.equal(clean, official):
        raise InputError(f"{file}: clean_label does not match the official labels")
    if len(given) != len(official):
        raise InputError(f"{file}: {len(given):,} labels for {len(official):,} images")
    check_labels(given, len(data.class_names), str(file))
    agreement = float((given == official).double().mean())
    if agreement < LEAST_AGREEMENT:
        raise InputError(
            f"{file}: only {agreement:.0%} of the labels agree with the official ones;"
            " are they in a different order?"
        )
    return replace(data.with_given_labels(given), name=name)


def _find(wanted: _HumanLabels, root: Path, name: str) -> Path:
    """The public .pt file, else the first .npz that has the key."""
    if (root / wanted.pt_file).is_file():
        return root / wanted.pt_file
    tables = sorted(root.glob(wanted.npz_pattern))
    for table in tables:
        if wanted.npz_key in _read_npz(table):
            return table
    seen = f" (not in {first_few([table.name for table in tables])})" if tables else ""
    raise InputError(
        f"no label file for {name}: looked in {root} for {wanted.pt_file} and for"
        f" {wanted.npz_pattern} with the key '{wanted.npz_key}'{seen}; set --data-dir to its folder"
    )


def _read(file: Path, wanted: _HumanLabels) -> tuple[Tensor, Tensor | None]:
    """The given labels and, if the file has them, the official ones."""
    if file.suffix == ".npz":
        return _as_labels(_read_npz(file)[wanted.npz_key], file, wanted.npz_key), None
    content = _read_pt(file)
    missing = [key for key in (wanted.pt_key, "clean_label") if key not in content]
    if missing:
        raise InputError(f"{file} has no '{missing[0]}', only {first_few(sorted(content))}")
    given, clean = (_as_labels(content[key], file, key) for key in (wanted.pt_key, "clean_label"))
    return given, clean


def _read_npz(file: Path) -> Mapping[str, Any]:
    """All arrays of the file; pickled ones are refused."""
    try:
        # Opened here, because np.load does not close the file if it is not a valid one.
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception as error:  # zip, zlib, header and dtype raise different errors
        raise InputError(f"{file} cannot be read safely: {first_line(error)}") from None


def _read_pt(file: Path) -> Mapping[str, Any]:
    """A dict of arrays; unpickles only NumPy arrays."""
    import _codecs  # old pickles store bytes as a call of _codecs.encode

    # NumPy has moved this function; files contain the path of their time.
    reconstruct: Any = np.empty(0).__reduce__()[0]
    integers = [type(np.dtype(kind)) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
    allowed: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        _codecs.encode,
        np.ndarray,
        np.dtype,
        *integers,
    ]
    try:
        with torch.serialization.safe_globals(allowed):
            content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle can raise anything
        raise InputError(f"{file} cannot be read safely: {first_line(error)}") from None
    if not isinstance(content, dict):
        raise InputError(f"{file} is not a dict of label arrays")
    return content


def _as_labels(values: Any, file: Path, key: str) -> Tensor:
    """A flat tensor of int64, whatever integers the file has."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{file}: '{key}' is not a flat array of integers")
    return torch.from_numpy(array.astype(np.int64))
