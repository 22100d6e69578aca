"""A CSV or Parquet table as columns of text, however it is written. No torch here."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from oddly.errors import InputError, count, first_few, first_line, shown

SUFFIXES = (".csv", ".tsv", ".parquet")
PATH_COLUMNS = ("path", "file", "filename", "image", "image_path", "file_name", "filepath")
ID_COLUMNS = ("id", *PATH_COLUMNS)
LABEL_COLUMNS = ("label", "class", "target", "category")
PERSON = "person"  # in column decided_by: whoever else decided is not taken at their word


def read_text_columns(
    file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The wanted columns (by any of their names, whatever case) as text; a missing value is ''.

    Blanks around a value stay: a folder may begin or end with one.
    """
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


def spell(names: Sequence[str], known: Container[str]) -> list[str]:
    """Names as the data know them: without blanks, `./` and backslashes, if not as written.

    One that is not known at all stays as it is.
    """
    spelt = []
    for name in names:
        bare = name.strip()
        tries = (name, bare, bare.replace("\\", "/").removeprefix("./"))
        spelt.append(next((each for each in tries if each in known), name))
    return spelt


def refuse_empty(file: Path, name: str, values: Sequence[str]) -> None:
    """Refuse rows without a value, naming the first."""
    empty = [i for i, value in enumerate(values) if not value.strip()]
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
    delimiter = max(",;\t", key=re.sub('"[^"]*"', "", first).count)
    header = next(csv.reader([first], delimiter=delimiter))
    found = _match(file, header, wanted, optional)
    table = pa.csv.read_csv(
        file,
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
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
        if pa.types.is_nested(kind) or _is_binary(kind):
            raise pa.ArrowInvalid("nested")
        return [value or "" for value in column.cast(pa.string()).to_pylist()]
    except pa.ArrowException:
        raise InputError(
            f"{shown(str(file))}: column {name} is of type {shown(str(kind))[:60]}, not text or"
            " integers"
        ) from None


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
