"""Read every image once: features or pixels, and which images cannot be read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from oddly.clean.leave import write_unreadable
from oddly.data.base import DataOptions, LabelledData
from oddly.data.files import at_size, measure, none_readable, without
from oddly.data.images import digest
from oddly.data.labels import replace_labels
from oddly.data.source import ImageSource, decode_files
from oddly.engine.build import frozen_backbone
from oddly.engine.config import RunConfig
from oddly.engine.embed import Progress, embed_images, features_data, with_features
from oddly.engine.feature_cache import FeatureCache
from oddly.errors import InputError

FEATURES = "features"
"""Folder of a run with the backbone's features, so that no image is embedded twice."""


@dataclass(frozen=True)
class Looked:
    """The result of reading every image."""

    data: LabelledData
    """The readable examples, ready to train on."""
    source: ImageSource
    """Their images."""
    digests: Sequence[bytes]
    """One per readable example; equal if the network sees the same pixels."""
    unreadable: Mapping[str, str]
    """Id → reason."""

    def under_labels(self, table: Path) -> Looked:
        """The same with the labels of a table, and without the examples that it removes."""
        data = replace_labels(self.data, table)
        place = {name: i for i, name in enumerate(self.data.train.ids)}
        stay = [place[name] for name in data.train.ids]
        digests = [self.digests[i] for i in stay]
        return replace(self, data=data, source=self.source.subset(stay), digests=digests)


def look(
    listed: LabelledData,
    config: RunConfig,
    folder: Path,
    device: torch.device,
    progress: Progress | None,
) -> Looked:
    """Embed or decode all listed images; unreadable ones are reported, not refused."""
    total = len(listed.train)
    tell = None if progress is None else lambda done: progress(done, total)
    listed = at_size(listed, config.image_size)
    source = listed.train.images
    assert isinstance(source, ImageSource)
    digests: Sequence[bytes]
    bad: Mapping[int, str]
    if config.frozen:
        cache = FeatureCache(folder / FEATURES, _key(config), _find_other_features(folder, config))
        found = embed_images(source, lambda: frozen_backbone(config), device, cache, tell)
        cache.drop_unused()
        digests, bad = found.digests, found.unreadable
        _check_any(listed, bad, folder)
        data = features_data(listed, with_features(listed.train, found))
    else:
        every = [b""] * total

        def see(place: int, image: Tensor) -> None:
            every[place] = digest(image.numpy().tobytes())

        images, bad = decode_files(source, DataOptions().memory_limit, tell, see)
        _check_any(listed, bad, folder)
        digests = [each for i, each in enumerate(every) if i not in bad]
        data = replace(listed, train=replace(without(listed.train, bad), images=images))
        mean, std = measure(data.train)
        data = replace(data, mean=mean, std=std)
    stay, unreadable = [i for i in range(total) if i not in bad], _by_id(listed, bad)
    return Looked(replace(data, unread=[*unreadable]), source.subset(stay), digests, unreadable)


def _by_id(listed: LabelledData, bad: Mapping[int, str]) -> dict[str, str]:
    return {listed.train.ids[i]: why for i, why in bad.items()}


def _check_any(listed: LabelledData, bad: Mapping[int, str], folder: Path) -> None:
    """If no image can be read, write the list and raise an error that says why."""
    if len(bad) < len(listed.train):
        return
    unreadable = _by_id(listed, bad)
    if not (folder / "done").exists():  # the list of a finished run is right: images went later
        write_unreadable(folder, {**listed.closed, **unreadable})
    told = none_readable(listed.name, list(unreadable.items()))
    raise InputError(f"{told}; full list in {folder / 'unreadable.csv'}")


def _find_other_features(folder: Path, config: RunConfig) -> list[Path]:
    """Feature folders of other runs: those beside this one, and the one that `labels` is from."""
    runs = set(folder.resolve().parent.glob("*/"))
    if config.labels:
        runs.add(Path(config.labels).resolve().parent)
    runs.discard(folder.resolve())
    return sorted(run / FEATURES for run in runs if os.path.isdir(run / FEATURES))


def _key(config: RunConfig) -> str:
    """What features depend on besides the images; a file of weights counts by its content."""
    weights = config.weights or ""
    if Path(weights).is_file():
        with open(weights, "rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{config.backbone} {weights}"
