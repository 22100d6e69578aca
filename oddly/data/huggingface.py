"""Load a Hugging Face dataset: a folder from `save_to_disk`, or Parquet files as on the hub."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import torch

from oddly.data.base import DataOptions, LabelledData, Split
from oddly.data.files import load_images
from oddly.data.image_rows import ImageRows
from oddly.data.listing import natural, storable
from oddly.errors import InputError, count, first_few, first_line, shown
from oddly.layout import SPLIT_NAMES
from oddly.text_table import LABEL_COLUMNS, PATH_COLUMNS

IMAGE_COLUMNS = ("image", "img", "picture", "photo")
LABEL_NAMES = (*LABEL_COLUMNS, "labels", "fine_label")


@dataclass(frozen=True)
class _Table:
    """One split: its Arrow table, and the names of classes that are stored as numbers."""

    table: Any
    names: Mapping[str, Sequence[str]]
    """Column → names of its classes."""


def is_huggingface(folder: Path) -> bool:
    """Whether the path is a saved dataset, a folder of Parquet files with images, or such a file.

    A table of labels next to the class folders of an image folder does not count.
    """
    if folder.is_file():
        return folder.suffix.lower() == ".parquet" and _is_of_images(folder, alone=True)
    if (folder / "dataset_dict.json").is_file() or (folder / "dataset_info.json").is_file():
        return True
    files = _parquet_files(folder)
    return bool(files) and (not _has_folders(folder) or any(map(_is_of_images, files)))


def _has_folders(folder: Path) -> bool:
    """Whether there are folders besides data/, such as classes."""
    names = [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    return any(name != "data" and not name.startswith(".") for name in names)


def _is_of_images(file: Path, alone: bool = False) -> bool:
    """Whether a Parquet file contains images; a file `alone` may instead be a table of paths."""
    try:
        columns = {column.name.lower(): column.type for column in pa.parquet.read_schema(file)}
    except (pa.ArrowException, OSError):
        return False
    images = {name for name, kind in columns.items() if _holds_images(kind)}
    if not alone or images.intersection(IMAGE_COLUMNS):
        return bool(images)
    return bool(images) and not set(columns).difference(images).intersection(PATH_COLUMNS)


def load_huggingface(folder: Path, options: DataOptions) -> LabelledData:
    """Images and labels of its splits; an example's id is its split and row, as `train/12`."""
    splits = _read_parquet(folder) if _parquet_files(folder) else _read_saved(folder)
    # A test split may lack the label column, so look at training splits first.
    asked = sorted(splits, key=lambda name: SPLIT_NAMES.get(name.lower()) != "train")
    image, label = _find_columns(folder, splits[asked[0]])
    splits, notes = _leave_unlabelled_out(splits, label)
    parts = _sort_splits(folder, splits, options.pool_splits)
    used = [name for names in parts.values() for name in names]
    texts = {name: _label_texts(folder, splits[name], label) for name in used}
    class_names = _class_names(folder, splits, label, [t for n in parts["train"] for t in texts[n]])
    train, test = (
        _join(folder, {name: splits[name] for name in names}, image, texts, class_names, options)
        if (names := parts.get(kind))
        else None
        for kind in ("train", "test")
    )
    assert train is not None
    if unused := [name for name in splits if name not in used]:
        notes.append(f"splits not used: {first_few(unused)}; oddly train --pool-splits uses all")
    if len(parts["train"]) > 1:
        notes.append(f"judged together: {first_few(parts['train'])}")
    real = Path(os.path.realpath(folder))
    name = storable(real.stem if real.is_file() else real.name)
    return load_images(name, class_names, (train, test), options, notes)


def _parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in the folder or in its data/, as on the hub; or the file itself."""
    if folder.is_file():
        return [folder]
    return sorted([*folder.glob("*.parquet"), *folder.glob("data/*.parquet")])


def _read_parquet(folder: Path) -> dict[str, _Table]:
    """Splits by the files' names: train-00000-of-00002.parquet; anything else is train."""
    by_split: dict[str, list[Path]] = {}
    for file in _parquet_files(folder):
        split = file.stem.split("-")[0]
        by_split.setdefault(split if split.lower() in SPLIT_NAMES else "train", []).append(file)
    splits = {}
    for split, files in by_split.items():
        tables = [_read_file(file) for file in files]
        try:
            table = pa.concat_tables(tables)
        except pa.ArrowException:
            raise InputError(
                f"{shown(str(folder))}: {split} files have different columns"
            ) from None
        splits[split] = _Table(table, _names_in_schema(tables[0].schema))
    return splits


def _read_file(file: Path) -> Any:
    try:
        with pa.parquet.ParquetFile(file) as parquet:
            return parquet.read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{shown(str(file))} cannot be read: {shown(first_line(error))}") from None


def _names_in_schema(schema: Any) -> dict[str, Sequence[str]]:
    """Class names as `datasets` writes them into a file's metadata."""
    try:
        about = json.loads((schema.metadata or {})[b"huggingface"])
        features = about["info"]["features"]
        return {k: f["names"] for k, f in features.items() if isinstance(f, dict) and "names" in f}
    except (KeyError, ValueError, TypeError):
        return {}


def _read_saved(folder: Path) -> dict[str, _Table]:
    try:
        import datasets
    except ModuleNotFoundError:
        raise InputError(
            f'{shown(str(folder))} needs the package datasets: pip install "oddly[datasets]"'
        ) from None
    try:
        loaded = datasets.load_from_disk(str(folder))
    except Exception as error:  # many kinds, for an incomplete folder
        raise InputError(
            f"{shown(str(folder))} cannot be read: {shown(first_line(error))}"
        ) from None
    splits = loaded if isinstance(loaded, dict) else {"train": loaded}
    made = {}
    for name, split in splits.items():
        names = {k: f.names for k, f in split.features.items() if hasattr(f, "names")}
        # `with_format` applies shuffling and filtering, without decoding images.
        made[name] = _Table(split.with_format("arrow")[:], names)
    return made


def _sort_splits(folder: Path, splits: Mapping[str, _Table], pool: bool) -> dict[str, list[str]]:
    """Names of the splits to train on and to test on."""
    if pool or len(splits) == 1:
        return {"train": list(splits)}
    parts: dict[str, list[str]] = {}
    for name in splits:
        parts.setdefault(SPLIT_NAMES.get(name.lower(), "other"), []).append(name)
    if "train" not in parts:
        raise InputError(f"{shown(str(folder))} has no split train, only {first_few([*splits])}")
    return {"train": parts["train"], "test": parts.get("test") or parts.get("val") or []}


def _find_columns(folder: Path, split: _Table) -> tuple[str, str]:
    """Find the image column by its name or its type, and the label column by its name."""
    columns = {name.lower(): name for name in split.table.column_names}
    image = next((columns[name] for name in IMAGE_COLUMNS if name in columns), None)
    if image is None:
        kinds = {n: split.table.schema.field(n).type for n in split.table.column_names}
        image = next((n for n, kind in kinds.items() if _holds_images(kind)), None)
    label = next((columns[name] for name in LABEL_NAMES if name in columns), None)
    label = label or next(iter(split.names), None)
    for kind, found in (("image", image), ("label", label)):
        if found is None:
            raise InputError(
                f"{shown(str(folder))} has no column {kind}; its columns are"
                f" {first_few(split.table.column_names)}"
            )
    assert image is not None and label is not None
    return image, label


def _holds_images(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return any(kind.field(i).name == "bytes" for i in range(kind.num_fields))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _leave_unlabelled_out(
    splits: Mapping[str, _Table], label: str
) -> tuple[dict[str, _Table], list[str]]:
    """Drop splits without any labels, such as the test set of a contest; and a note about them."""
    bare = [name for name, split in splits.items() if _is_unlabelled(split.table, label)]
    if not bare or len(bare) == len(splits):
        return dict(splits), []
    rest = {name: split for name, split in splits.items() if name not in bare}
    return rest, [f"left out splits without labels: {first_few(bare)}"]


def _is_unlabelled(table: Any, label: str) -> bool:
    return label not in table.column_names or all(map(_is_no_label, table[label].to_pylist()))


def _is_no_label(value: Any) -> bool:
    return value is None or value == -1 or value == "" or value != value  # NaN


def _label_texts(folder: Path, split: _Table, label: str) -> list[str]:
    """Every row's label as text; the name of the class if labels are numbers with names."""
    kind = split.table[label].type
    if pa.types.is_nested(kind) or _holds_images(kind):
        raise InputError(
            f"{shown(str(folder))}: column {shown(label)} is of type {shown(str(kind))[:60]}, not"
            " one class for each image"
        )
    values = split.table[label].to_pylist()
    empty = [i for i, value in enumerate(values) if _is_no_label(value)]
    if empty:
        raise InputError(
            f"{shown(str(folder))}: {count(len(empty), 'row')} without a label, first row"
            f" {empty[0] + 1}"
        )
    if pa.types.is_floating(kind) and all(value.is_integer() for value in values):
        values = [int(value) for value in values]  # integers stored as floats
    names = split.names.get(label)
    if names and all(isinstance(value, int) and 0 <= value < len(names) for value in values):
        return [str(names[value]) for value in values]
    return [str(value).strip() for value in values]


def _class_names(
    folder: Path, splits: Mapping[str, _Table], label: str, found: Sequence[str]
) -> list[str]:
    present = set(found)
    if not present:
        raise InputError(f"{shown(str(folder))} has no rows")
    if len(present) < 2:
        only = first_few(sorted(present))
        raise InputError(f"{shown(str(folder))} has only one class ({only}); two are needed")
    names = next(iter(splits.values())).names.get(label) or sorted(present, key=natural)
    return [storable(str(name)) for name in names]


def _join(
    folder: Path,
    splits: Mapping[str, _Table],
    image: str,
    texts: Mapping[str, Sequence[str]],
    class_names: Sequence[str],
    options: DataOptions,
) -> Split:
    """Join splits into one."""
    index = {name: k for k, name in enumerate(class_names)}
    given = [text for name in splits for text in texts[name]]
    unknown = sorted(set(given) - set(index), key=natural)
    if unknown:
        raise InputError(
            f"{shown(str(folder))}: classes not in the train split: {first_few(unknown)}"
        )
    columns = [chunk for split in splits.values() for chunk in split.table[image].chunks]
    column = pa.chunked_array(columns)
    ids = [f"{name}/{row}" for name in splits for row in range(len(texts[name]))]
    real = os.path.realpath(folder)
    root = os.path.dirname(real) if os.path.isfile(real) else real
    source = ImageRows(root, column, range(len(ids)), options.image_size)
    return Split(source, torch.tensor([index[text] for text in given]), ids)
