"""Find images that occur more than once, by the pixels that the network sees."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from oddly.data.base import Split
from oddly.data.images import digest, pixel_digest
from oddly.data.source import ImageSource
from oddly.pictures import Unreadable

SAME_FILE, SAME_PIXELS = "same file content", "same pixels"


@dataclass(frozen=True)
class Duplicates:
    """One picture under several ids."""

    places: tuple[int, ...]
    labels: tuple[int, ...]
    same: str
    """What they share: the file's bytes, or only the decoded pixels."""

    @property
    def conflicting(self) -> bool:
        """Whether they have different labels, at least one of which must be wrong."""
        return len(set(self.labels)) > 1


def find_duplicates(
    split: Split, source: ImageSource, digests: Sequence[bytes]
) -> list[Duplicates]:
    """Groups of the same picture, conflicting ones first.

    `digests` (of the pixels as the network sees them, one per example) give the candidates; only
    images that are also equal at full size count.
    """
    labels = split.labels.tolist()
    found = []
    for candidates in _group(range(len(digests)), digests):
        for places, same in _confirm(source, candidates):
            found.append(Duplicates(tuple(places), tuple(labels[i] for i in places), same))
    return sorted(found, key=lambda group: (not group.conflicting, group.places))


def number_pictures(groups: Sequence[Duplicates], examples: int) -> Tensor:
    """int64 (N,): number of the picture if it occurs with different labels, else -1."""
    pictures = torch.full((examples,), -1, dtype=torch.int64)
    for number, group in enumerate(groups):
        if group.conflicting:
            pictures[list(group.places)] = number
    return pictures


def _group(places: Sequence[int], digests: Sequence[bytes]) -> list[list[int]]:
    """Groups of two or more places with equal digests."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    for place, content in zip(places, digests, strict=True):
        groups[content].append(place)
    return [group for group in groups.values() if len(group) > 1]


def _confirm(source: ImageSource, candidates: Sequence[int]) -> Iterator[tuple[list[int], str]]:
    """Split candidates into groups that really are the same picture."""
    contents = {i: _content_digest(source, i) for i in candidates}
    if len(set(contents.values())) == 1:
        yield list(candidates), SAME_FILE
        return
    # Decode one file per content, in case 20,000 copies of a placeholder differ in one file.
    examples = {content: i for i, content in contents.items()}
    pixels = {content: _full_digest(source, i) for content, i in examples.items()}
    for group in _group(candidates, [pixels[contents[i]] for i in candidates]):
        same_file = len({contents[i] for i in group}) == 1
        yield group, SAME_FILE if same_file else SAME_PIXELS


def _content_digest(source: ImageSource, place: int) -> bytes:
    try:
        content = source.source(place)
        if isinstance(content, bytes):
            return digest(content)
        with open(content, "rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except (OSError, Unreadable):  # deleted meanwhile: equal to no other
        return f"gone {place}".encode()


def _full_digest(source: ImageSource, place: int) -> bytes:
    try:
        return pixel_digest(source.source(place))
    except Unreadable:
        return f"gone {place}".encode()
