"""For small images, try on some of them which of two networks separates wrong labels better.

A network trained on photographs knows little about small drawings; a small network from scratch
learns little from few small photographs. The files do not say which of these the images are. To the
former, drawings look much alike. If the images do, both are tried, and the contrast of their
verdicts decides (docs/clean.md, "Small images").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from oddly.clean.look import look
from oddly.clean.settings import NETWORKS, SMALL, TINY, Tried, choose
from oddly.clean.survey import Survey
from oddly.data.base import LabelledData, Split
from oddly.data.labels import replace_labels
from oddly.data.source import ImageSource
from oddly.engine.embed import Progress, is_centred
from oddly.engine.loop import run_config
from oddly.engine.outcome import MEASURED_FROM
from oddly.errors import InputError

MANY = 2_000  # from this many images on, the network for photographs does well on drawings too
TRIED = 600  # images at most
SEED = 0x7A1
NAMES_ONE = ("model", "backbone", "weights", "fine_tune")


def is_wanted(found: Survey, asked: Mapping[str, Any]) -> bool:
    """Whether images are small and few, and the user has not chosen network or method."""
    if any(asked.get(name) for name in NAMES_ONE) or asked.get("method") not in (None, "odd"):
        return False
    if asked.get("settings", {}).get("counterfactual") not in (None, "sentinels"):
        return False  # only sentinels yield a contrast
    small = found.short_side is not None and TINY <= found.short_side < SMALL
    return small and MEASURED_FROM <= found.images < MANY


def choose_some(
    listed: LabelledData, found: Survey, asked: Mapping[str, Any]
) -> LabelledData | None:
    """The images to try on, with the labels to be used; None if nothing is to be tried."""
    if not is_wanted(found, asked):
        return None
    some = take_some(under_labels(listed, asked.get("labels")))
    return some if len(some.train) >= MEASURED_FROM else None


def try_both(
    source: str,
    some: LabelledData,
    found: Survey,
    asked: Mapping[str, Any],
    device: torch.device,
    progress: Progress | None = None,
) -> Tried | None:
    """The contrast of both networks on the same images; None if that is not possible."""
    found = replace(found, images=len(some.train))

    def judge(network: Mapping[str, Any]) -> tuple[float, LabelledData] | None:
        try:
            config, _ = choose(source, found, {**asked, **network}, device.type)
            with TemporaryDirectory() as alone:  # `look` searches beside `seen` for features
                (seen := Path(alone) / "seen").mkdir()
                data = look(some, config, seen, device, progress).data
                unlabelled = replace(config, labels=None)  # the labels are there already
                contrast = run_config(unlabelled, Path(alone) / "run", data).summary["contrast"]
        except InputError:  # options that do not fit this network, or hardly any readable image
            return None
        except OSError:  # no space for temporary files; the run itself may be on another disk
            return None
        return None if contrast is None or len(data.train) < MEASURED_FROM else (contrast, data)

    if (frozen := judge(NETWORKS["frozen"])) is None:
        return None
    contrast, data = frozen
    features = data.train.images
    if not isinstance(features, torch.Tensor) or not is_centred(features):
        return Tried(len(data.train), contrast)
    scratch = judge(NETWORKS["scratch"])
    return scratch and Tried(len(data.train), contrast, scratch[0])


def under_labels(listed: LabelledData, table: str | None) -> LabelledData:
    """Listed images with the labels of a table, and without those that it removes."""
    if table is None:
        return listed
    train, images = listed.train, listed.train.images
    assert isinstance(images, ImageSource)
    numbers = torch.arange(len(train)).view(-1, 1, 1, 1)
    given = replace_labels(replace(listed, train=replace(train, images=numbers)), Path(table)).train
    assert isinstance(given.images, torch.Tensor)
    places = given.images.flatten().tolist()
    return replace(listed, train=Split(images.subset(places), given.labels, given.ids))


def take_some(listed: LabelledData, number: int = TRIED) -> LabelledData:
    """A random sample of at most `number` images, the same each time."""
    train, images = listed.train, listed.train.images
    assert isinstance(images, ImageSource)
    draw = torch.Generator().manual_seed(SEED)
    places = torch.randperm(len(train), generator=draw)[:number].sort().values
    chosen = places.tolist()
    ids = [train.ids[i] for i in chosen]
    return replace(listed, train=Split(images.subset(chosen), train.labels[places], ids))
