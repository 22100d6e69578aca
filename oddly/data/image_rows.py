"""Images that are rows of Arrow tables, as {bytes, path} or as plain bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from oddly.data.images import digest
from oddly.data.source import ImageSource, file_stamp
from oddly.pictures import Unreadable


class ImageRows(ImageSource):
    """Images inside Arrow tables, as {bytes, path} or as plain bytes."""

    def __init__(self, root: str, column: Any, rows: Sequence[int], size: int) -> None:
        self.root, self.column, self.rows, self.size = root, column, rows, size

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, index: int) -> str | bytes:
        value = self.column[self.rows[index]].as_py()
        if isinstance(value, dict):
            path = value.get("path")
            value = value.get("bytes")
            if value is None and path:
                return self._file(path)
        if not isinstance(value, bytes):
            raise Unreadable("no image in this row")
        return value

    def _file(self, path: str) -> str:
        place = os.path.join(self.root, path)
        if not os.path.isfile(place):
            raise Unreadable("only a path, and no such file; embed the images")
        return place

    def stamp(self, index: int) -> str:
        """A hash of the content: a dataset that is saved again may have another order."""
        try:
            content = self.source(index)
        except Unreadable:
            return "none"
        if isinstance(content, str):
            return file_stamp(content)
        return digest(content).hex()

    def name(self, index: int) -> str:
        return f"{self.root}, row {self.rows[index]}"

    def subset(self, places: Sequence[int]) -> ImageRows:
        rows = [self.rows[i] for i in places]
        return ImageRows(self.root, self.column, rows, self.size)

    def resized(self, size: int) -> ImageRows:
        return ImageRows(self.root, self.column, self.rows, size)
