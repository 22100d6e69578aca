"""The picture of an example: read only from the dataset's folder, re-encoded, bounded in size.

The page requests pictures by the example's number, never by a path. The id behind the number is
not trusted either: wherever it leads (`..`, links), only files below the root are opened. If a
table lists its pictures by absolute paths, exactly those paths may be opened as well.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow.compute as pc
from PIL import Image

from oddly.errors import InputError
from oddly.pictures import Unreadable, file_names, list_formats, read_picture
from oddly.records import Run, read_table

MAX_PIXELS = 80_000_000  # a picture beyond this is refused before it is decoded
LARGEST_SIDE = 1024
"""Pixels: no page shows more."""
OUTSIDE = "outside the data folder; try --images DIR"
LOSSLESS_SIDE = 128  # up to here PNG, beyond JPEG: ten times faster than WebP at full size


class PictureSource(Protocol):
    """Where the pictures of a run come from."""

    def read(self, id: str) -> Image.Image:
        """The example's picture, upright, RGB, at most MAX_PIXELS; else `Unreadable`."""
        ...


class NoImages:
    """For a run without suspects, or from a version that stored no small pictures."""

    def read(self, id: str) -> Image.Image:
        raise Unreadable("this run has no pictures")


class StoredPictures:
    """Small pictures stored in the run folder, of data that are not files (digits, CIFAR)."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    @classmethod
    def of(cls, run: Run) -> StoredPictures | None:
        """The pictures that the run stored, if any."""
        try:
            if not (stored := run.thumbnails):
                return None
            ids = read_table(run.path / "verdicts.parquet", ["id"])["id"].take(list(stored))
        except (InputError, KeyError, IndexError):  # damaged: review without pictures
            return None
        return cls(dict(zip(ids.to_pylist(), stored.values(), strict=True)))

    def read(self, id: str) -> Image.Image:
        if id not in self._contents:
            raise Unreadable("no picture stored")
        return read_picture(self._contents[id], LARGEST_SIDE, MAX_PIXELS)


class PictureFiles:
    """Pictures below one folder, by paths relative to it or absolute ones in it.

    `listed`: absolute paths that may be opened as well, wherever they lie.
    """

    def __init__(
        self, root: Path, base: Path | None = None, listed: Collection[str] = frozenset()
    ) -> None:
        self.root = os.path.realpath(root)
        self._bases = [self.root, os.path.realpath(base or root)]
        self._listed = listed
        list_formats()  # load Pillow's plugins now, not with the first picture

    def find(self, id: str) -> str:
        """The real path of an example's file."""
        names, outside = file_names(id), False
        if id in self._listed:
            if found := next(filter(_is_plain_file, names), None):
                return found
            if not any(map(os.path.lexists, names)):
                raise Unreadable("file not found")
        for name in names:
            for base in self._bases:
                path = os.path.realpath(os.path.join(base, name))
                if not path.startswith(self.root.rstrip("/") + "/"):
                    outside = True
                elif os.path.lexists(path):
                    return path
        raise Unreadable(OUTSIDE if outside else "file not found")

    def read(self, id: str) -> Image.Image:
        if "\0" in id:
            raise Unreadable("not a file name")
        return read_picture(self.find(id), LARGEST_SIDE, MAX_PIXELS)


def _is_plain_file(path: str) -> bool:
    """Whether it is an absolute path to a file, without `..`, and not a link."""
    plain = os.path.isabs(path) and os.path.normpath(path) == path
    return plain and os.path.isfile(path) and not os.path.islink(path)


class FirstOf:
    """Reads from the first source that has the picture; if none has, the first reason counts."""

    def __init__(self, sources: Sequence[PictureSource]) -> None:
        self._sources = sources

    def read(self, id: str) -> Image.Image:
        reasons = []
        for source in self._sources:
            try:
                return source.read(id)
            except Unreadable as reason:
                reasons.append(reason)
        raise reasons[0]


def find_images(run: Run, id: str, folder: Path | None = None) -> PictureSource:
    """This run's pictures: its files, else what it stored; `id` is any id of the run."""
    stored = StoredPictures.of(run)
    is_row = not os.path.splitext(id)[1]
    if is_row and stored and folder is None:
        return stored
    files = find_files(run, folder)
    if files and stored:
        return FirstOf([files, stored])
    if found := files or stored:
        return found
    if is_row:  # data in memory, without files
        return NoImages()
    data = str(run.config.get("data") or "")
    hint = "restore them, or give their folder with --images"
    raise InputError(f"{data}: pictures of this run not found; {hint}")


def find_files(run: Run, folder: Path | None = None) -> PictureFiles | None:
    """The image files: in the data's folder as the run's settings say, or below `folder`."""
    base = run.data_root
    if folder is None:
        return None if base is None else PictureFiles(base, listed=_list_absolute(run, base))
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    return PictureFiles(folder, base)


def _list_absolute(run: Run, root: Path) -> frozenset[str]:
    """The absolute paths that a table lists; empty for an image folder, which needs none."""
    if not (root / Path(str(run.config.get("data"))).name).is_file():
        return frozenset()
    ids = read_table(run.path / "verdicts.parquet", ["id"])["id"]
    return frozenset(ids.filter(pc.starts_with(ids, "/")).to_pylist())


def encode(image: Image.Image, side: int) -> tuple[bytes, str]:
    """The picture re-encoded, with sides of at most `side` pixels; and its media type."""
    if max(image.size) > side:
        image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    buffer = io.BytesIO()
    if max(image.size) <= LOSSLESS_SIDE:
        image.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue(), "image/png"
    image.save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue(), "image/jpeg"
