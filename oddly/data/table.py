"""A CSV or Parquet table of image paths and labels, and how tables are read at all."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from oddly.data.base import DataOptions, LabelledData
from oddly.data.files import FileList, load_files
from oddly.data.image_folder import SPLIT_NAMES
from oddly.data.listing import first_few, natural, storable
from oddly.errors import InputError, count, first_line, shown

SUFFIXES = (".csv", ".tsv", ".parquet")
PATH_COLUMNS = ("path", "file", "filename", "image", "image_path", "file_name", "filepath")
LABEL_COLUMNS = ("label", "class", "target", "category")


def load_table(file: Path, options: DataOptions) -> LabelledData:
    """The files a table names, relative to its own folder, under the labels it gives them."""
    columns = read_text_columns(
        file,
        {"path": PATH_COLUMNS, "label": LABEL_COLUMNS, "split": ("split",)},
        optional=["split"],
    )
    paths, labels = columns["path"], columns["label"]
    for name, values in (("path", paths), ("label", labels)):
        refuse_empty(file, name, values)
    root = os.path.realpath(file.parent)
    paths, missing = _locate(root, paths)
    notes = _about_missing(file, [paths[i] for i in missing], len(paths), options)
    if not options.decode:
        missing = []  # whoever reads them will find out, and lists them with the unreadable
    splits = None if options.pool_splits else columns.get("split")
    parts = _split_rows(file, splits, sorted(set(range(len(paths))) - set(missing)))
    test_rows = parts.get("test", parts.get("val"))
    class_names = _class_names(file, [labels[i] for i in parts["train"]])
    lists = (
        _label(file, paths, labels, parts["train"], class_names),
        None if test_rows is None else _label(file, paths, labels, test_rows, class_names),
    )
    notes += _about_repeats(paths)
    return load_files(storable(file.stem), root, class_names, lists, options, notes)


def read_text_columns(
    file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The wanted columns (by any of their names, whatever case) as text; a missing value is ''."""
    try:
        if file.suffix.lower() == ".parquet":
            table = _read_parquet(file, wanted, optional)
        else:
            table = _read_csv(file, wanted, optional)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{shown(str(file))} cannot be read: it is not UTF-8 text") from None
    except (pa.ArrowException, OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"{shown(str(file))} cannot be read: {shown(reason)}") from None
    if not table.num_rows:
        raise InputError(f"{shown(str(file))} has no rows")
    return {name: _as_text(file, name, table[name]) for name in table.column_names}


def refuse_empty(file: Path, name: str, values: Sequence[str]) -> None:
    """Refuse rows without a value, naming the first."""
    empty = [i for i, value in enumerate(values) if not value]
    if empty:
        raise InputError(
            f"{shown(str(file))}: {count(len(empty), 'row')} without a {name}, the first is row"
            f" {empty[0] + 1}"
        )


def _read_parquet(file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str]) -> Any:
    with pa.parquet.ParquetFile(file) as parquet:
        found = _match(file, parquet.schema_arrow.names, wanted, optional)
        table = parquet.read(columns=list(found.values()))
    return table.select(list(found.values())).rename_columns(list(found))


def _read_csv(file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str]) -> Any:
    """Everything as text: a class may be called 007 or NA."""
    with open(file, encoding="utf-8-sig", newline="") as lines:
        first = lines.readline()
    if not first.strip():
        raise InputError(f"{shown(str(file))} is empty, or does not begin with column names")
    delimiter = max(",;\t", key=first.count)
    header = next(csv.reader([first], delimiter=delimiter))
    found = _match(file, header, wanted, optional)
    table = pa.csv.read_csv(
        file,
        parse_options=pa.csv.ParseOptions(delimiter=delimiter),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(found.values()),
            column_types=dict.fromkeys(found.values(), pa.string()),
        ),
    )
    return table.rename_columns(list(found))


def _match(
    file: Path,
    header: Sequence[str],
    wanted: Mapping[str, Sequence[str]],
    optional: Sequence[str],
) -> dict[str, str]:
    """For each wanted column the name it has in this table."""
    present = {name.strip().lower(): name for name in reversed(header)}  # the first of twins
    found = {}
    for name, aliases in wanted.items():
        match = next((present[alias] for alias in aliases if alias in present), None)
        if match is not None:
            found[name] = match
        elif name not in optional:
            raise InputError(
                f"{shown(str(file))} has no column {name} (or {', '.join(aliases[1:])});"
                f" it has {first_few(header)}"
            )
    return found


def _as_text(file: Path, name: str, column: Any) -> list[str]:
    kind = column.type
    try:
        if pa.types.is_dictionary(kind):  # pandas' category
            column = column.cast(kind.value_type)
        if pa.types.is_floating(column.type):  # integers that met a missing value
            column = column.cast(pa.int64())
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise pa.ArrowInvalid("nested")
        return [(value or "").strip() for value in column.cast(pa.string()).to_pylist()]
    except pa.ArrowException:
        raise InputError(
            f"{shown(str(file))}: column {name} is of type {shown(str(kind))[:60]}, not text or"
            " integers"
        ) from None


def _locate(root: str, paths: Sequence[str]) -> tuple[list[str], list[int]]:
    """Paths relative to root where they lie below it; and the places of those that do not exist."""
    located, missing = [], []
    for i, path in enumerate(paths):
        if "\\" in path and not os.path.isfile(os.path.join(root, path)):
            path = path.replace("\\", "/")  # a table written on Windows
        if not os.path.isfile(os.path.join(root, path)):
            missing.append(i)
        elif os.path.isabs(path) and path.startswith(root + "/"):
            path = path[len(root) + 1 :]
        located.append(path.removeprefix("./"))
    return located, missing


def _about_missing(
    file: Path, missing: Sequence[str], total: int, options: DataOptions
) -> list[str]:
    """A note about the files left out, or the error where the user did not agree to that."""
    if not missing:
        return []
    told = (
        f"{len(missing):,} of {count(total, 'file')} named in {shown(str(file))} do not exist:"
        f" {first_few(missing)}"
    )
    if not options.skip_unreadable:
        raise InputError(f"{told}; use --skip-unreadable to leave them out")
    return [f"{told}; left out"]


def _split_rows(
    file: Path, splits: Sequence[str] | None, rows: Sequence[int]
) -> dict[str, list[int]]:
    """Row numbers by split; without a split column all of them train."""
    if splits is None:
        parts = {"train": list(rows)}
    else:
        parts = {}
        for i in rows:
            kind = SPLIT_NAMES.get(splits[i].lower())
            if kind is None:
                raise InputError(
                    f"{shown(str(file))}: split '{shown(splits[i])}' in row {i + 1} is none of"
                    " train, val, test"
                )
            parts.setdefault(kind, []).append(i)
    if not parts.get("train"):
        raise InputError(f"{shown(str(file))} has no rows to train on")
    return parts


def _class_names(file: Path, labels: Sequence[str]) -> list[str]:
    names = sorted(set(labels), key=natural)
    if len(names) < 2:
        raise InputError(
            f"{shown(str(file))} has one class only ({shown(names[0])}), two are needed"
        )
    return names


def _label(
    file: Path,
    paths: Sequence[str],
    labels: Sequence[str],
    rows: Sequence[int],
    class_names: Sequence[str],
) -> FileList:
    """The rows' paths, and their labels as places in `class_names`."""
    index = {name: k for k, name in enumerate(class_names)}
    unknown = sorted({labels[i] for i in rows} - set(index), key=natural)
    if unknown:
        raise InputError(
            f"{shown(str(file))}: the test rows have classes that no training row has:"
            f" {first_few(unknown)}"
        )
    return FileList([paths[i] for i in rows], [index[labels[i]] for i in rows])


def _about_repeats(paths: Sequence[str]) -> list[str]:
    repeats = len(paths) - len(set(paths))
    if not repeats:
        return []
    return [f"{count(repeats, 'row')} name a file listed before; their ids end in #2, #3, …"]
