"""Write files atomically, so that readers never see half of one: JSON, rows, Parquet."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oddly.errors import InputError, count, shown

TEMPORARY = ".oddly-tmp"  # suffix of incomplete files; a killed process may leave one behind

FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]*)?")  # a class may be called -1


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes `path`'s place once it is whole, or leaves no trace."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # it does not exist, or the file system became read-only
            temporary.unlink()
        # Name the user's file: for a full disk the error has no name, or that of the temporary one.
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)
            if error.filename2 is not None:
                del error.filename2  # None would be printed as "… -> None"
        raise


def write_atomic(path: Path, content: bytes | str) -> None:
    """Write the whole file or nothing."""
    if isinstance(content, str):
        # file names that are not UTF-8 contain lone surrogates: write those as \udcff
        content = content.encode("utf-8", "backslashreplace")
    with replacing(Path(path)) as file:
        file.write(content)


def plain(value: Any) -> Any:
    """Convert to what JSON can store: NumPy to Python, paths to text, NaN and infinity to null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON."""
    write_atomic(path, json.dumps(plain(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError):
        raise InputError(f"{path} is not valid JSON; train again with --overwrite") from None


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table that spreadsheets can open, atomically.

    Names are written as they are. An apostrophe before those that `about_formulas` warns about
    would be part of the name for every reader except a spreadsheet.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    careful = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([header], rows):
        returns = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (careful if returns else writer).writerow(row)  # `writer` does not quote \r
    write_atomic(path, text.getvalue())


def about_formulas(names: Iterable[str]) -> str | None:
    """A warning if a spreadsheet would treat names as formulas; else None."""
    odd = [name for name in names if name.startswith(FORMULA) and not NUMBER.fullmatch(name)]
    if not odd:
        return None
    return (
        f"{count(len(odd), 'name')} start{'s' * (len(odd) == 1)} with = + - or @, for example"
        f" {shown(odd[0])}: a spreadsheet may run it as a formula, so import the CSV as text"
    )


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append one line of JSON, or nothing if that fails."""
    line = (json.dumps(plain(row), allow_nan=False) + "\n").encode()
    with open(path, "ab", buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) < len(line):  # a nearly full disk may write only a part
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            file.truncate(start)
            raise


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All lines of JSON. An incomplete last line (after a kill) is skipped; others are errors."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    while lines and not lines[-1]:
        lines.pop()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            if number < len(lines):
                raise InputError(f"{path}: line {number} is not valid JSON") from None
    return rows


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write the whole table or nothing."""
    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in a Parquet file, or some of its columns, as Arrow holds it."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns)
    except (OSError, pa.ArrowException):
        reason = "cannot be read (truncated or not Parquet)"
        raise InputError(f"{path}: {reason}; train again with --overwrite") from None


def read_parquet(path: Path) -> pd.DataFrame:
    """The table in a Parquet file."""
    frame: pd.DataFrame = read_table(path).to_pandas()
    return frame
