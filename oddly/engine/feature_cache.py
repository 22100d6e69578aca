"""Cache features of images in files, so that no image goes through the backbone twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from oddly.data.source import ImageSource
from oddly.records import write_atomic


@dataclass(frozen=True)
class Embedded:
    """The result of one pass over N listed images, of which n were readable."""

    features: Tensor  # (n, D)
    digests: list[bytes]
    """One per readable image; equal if the pixels are equal at the backbone's size."""
    unreadable: Mapping[int, str]
    """Place in the list → reason."""


class FeatureCache:
    """Features in files, named by a hash of everything they depend on.

    If anything changes (an image, the list, the backbone, its weights, the size), the name changes.
    So files cannot be out of date, and files that were not asked for can be deleted.
    """

    def __init__(self, folder: Path | None, key: str, others: Sequence[Path] = ()) -> None:
        self.folder, self.key = folder, key
        self.others = others  # caches of other runs, which are only read
        self.used: set[str] = set()

    def name(self, source: ImageSource, places: range) -> str:
        if self.folder is None:
            return ""  # no cache: do not stat every image for a name
        key = hashlib.sha256(f"{self.key} {source.size}".encode())
        for i in places:
            line = f"{source.name(i)} {source.stamp(i)}\n"
            key.update(line.encode("utf-8", "backslashreplace"))
        name = f"{key.hexdigest()[:20]}.safetensors"
        self.used.add(name)
        return name

    def load(self, name: str) -> Embedded | None:
        """The stored features; None if the file does not exist or is damaged."""
        if self.folder is None:
            return None
        part = self._read(self.folder / name)
        for other in self.others if part is None else ():
            if (part := self._read(other / name)) is not None:
                self.save(name, part)  # the other folder may be deleted later
                break
        return part

    def _read(self, path: Path) -> Embedded | None:
        if not path.is_file():
            return None
        try:
            with safe_open(path, "pt") as file:
                notes = json.loads(file.metadata()["oddly"])
                features = file.get_tensor("features")
        except (SafetensorError, OSError, KeyError, ValueError):
            return None
        digests = [bytes.fromhex(each) for each in notes["digests"]]
        unreadable = {int(place): reason for place, reason in notes["unreadable"].items()}
        return Embedded(features, digests, unreadable)

    def save(self, name: str, part: Embedded) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = {
            "digests": [each.hex() for each in part.digests],
            "unreadable": dict(part.unreadable),
        }
        content = save({"features": part.features}, {"oddly": json.dumps(notes)})
        write_atomic(self.folder / name, content)

    def drop_unused(self) -> None:
        """Delete features of an earlier list or backbone."""
        if self.folder is not None and self.folder.is_dir():
            for file in self.folder.glob("*.safetensors"):
                if file.name not in self.used:
                    file.unlink(missing_ok=True)
