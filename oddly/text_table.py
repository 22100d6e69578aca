"""Read a CSV or Parquet table as columns of text, in any usual dialect. No torch here."""

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
PERSON = "person"  # in the column decided_by; any other value does not count


def read_text_columns(
    file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str] = ()
) -> dict[str, list[str]]:
    """The wanted columns (by any of their names, as `plain_name`) as text; a missing value is ''.

    Spaces around a value are kept, since the name of a folder may start or end with one.
    """
    try:
        if file.suffix.lower() == ".parquet":
            table = _read_parquet(file, wanted, optional)
        else:
            table = _read_csv(file, wanted, optional)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"cannot read {shown(str(file))}: not UTF-8 text") from None
    except (pa.ArrowException, OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"cannot read {shown(str(file))}: {shown(reason)}") from None
    if not table.num_rows:
        raise InputError(f"{shown(str(file))} has no rows")
    return {name: _as_text(file, name, table[name]) for name in table.column_names}


def plain_name(column: str) -> str:
    """The same for `Image Path`, `image-path` and `IMAGE_PATH`."""
    return "_".join(re.split(r"[\s_-]+", column.strip().lower()))


def about_choice(file: Path, wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """Notes if a table has several columns that could be meant, with the one that is used."""
    header = _read_header(file)
    notes = []
    for aliases in wanted.values():
        found = [name for name in header if plain_name(name) in aliases]
        if len(found) > 1:
            taken = min(found, key=lambda name: aliases.index(plain_name(name)))
            notes.append(
                f"{shown(file.name)} has the columns {first_few(found)}; using {shown(taken)}"
            )
    return notes


def _read_header(file: Path) -> list[str]:
    if file.suffix.lower() == ".parquet":
        return list(pa.parquet.read_schema(file).names)
    return _split_header(_first_line(file))[0]


def spell(names: Sequence[str], known: Container[str]) -> list[str]:
    """Names in the spelling of `known`: as written, or without spaces, `./` and backslashes.

    A name that is not known in any spelling is unchanged.
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
            f"{shown(str(file))}: {count(len(empty), 'row')} without a {name}, first row"
            f" {empty[0] + 1}"
        )


def _read_parquet(file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str]) -> Any:
    with pa.parquet.ParquetFile(file) as parquet:
        found = _match(file, parquet.schema_arrow.names, wanted, optional)
        table = parquet.read(columns=list(found.values()))
    return table.select(list(found.values())).rename_columns(list(found))


def _read_csv(file: Path, wanted: Mapping[str, Sequence[str]], optional: Sequence[str]) -> Any:
    """Everything as text: a class may be called 007 or NA."""
    header, delimiter = _split_header(_first_line(file))
    found = _match(file, header, wanted, optional)
    bad: list[Any] = []

    def note(row: Any) -> str:
        bad.append(row)
        return "error"

    try:
        table = pa.csv.read_csv(
            file,
            read_options=pa.csv.ReadOptions(use_threads=False),  # threads do not count rows
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=list(found.values()),
                column_types=dict.fromkeys(found.values(), pa.string()),
            ),
        )
    except pa.ArrowInvalid:
        if not bad:
            raise
        raise _unlike_header(file, bad[0]) from None
    return table.rename_columns(list(found))


def _unlike_header(file: Path, row: Any) -> InputError:
    where = "a row" if row.number is None else f"row {row.number - 1:,}"  # the header is the first
    return InputError(
        f"{shown(str(file))}: {where} has {count(row.actual_columns, 'column')}, expected"
        f" {row.expected_columns:,}: {shown(row.text)[:60]}"
    )


def _first_line(file: Path) -> str:
    with open(file, encoding="utf-8-sig", newline="") as lines:
        first = lines.readline()
    if not first.strip():
        raise InputError(f"{shown(str(file))} is empty, or does not begin with column names")
    return first


def _split_header(first: str) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter."""
    delimiter = max(",;\t", key=re.sub('"[^"]*"', "", first).count)
    return next(csv.reader([first], delimiter=delimiter)), delimiter


def _match(
    file: Path,
    header: Sequence[str],
    wanted: Mapping[str, Sequence[str]],
    optional: Sequence[str],
) -> dict[str, str]:
    """For each wanted column the name it has in this table."""
    present = {plain_name(name): name for name in reversed(header)}  # the first of duplicates wins
    found = {}
    for name, aliases in wanted.items():
        match = next((present[alias] for alias in aliases if alias in present), None)
        if match is not None:
            found[name] = match
        elif name not in optional:
            told = f"{shown(str(file))} has no column {name} (or {', '.join(aliases[1:])});"
            if any(_is_value(file, each) for each in header):
                raise InputError(f"{told} the first line must contain the column names")
            raise InputError(f"{told} its columns are {first_few(header)}")
    return found


def _is_value(file: Path, name: str) -> bool:
    """Whether what should be a column's name is a file, so the line of names is missing."""
    try:
        return (file.parent / name.strip()).is_file()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


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
            f"{shown(str(file))}: column {name} has type {shown(str(kind))[:60]}, expected text or"
            " integers"
        ) from None


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
