"""Test a finished network on another dataset whose classes have the same names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file

from oddly.data import load_data
from oddly.data.base import DataOptions, Split, find_folder
from oddly.data.imagenet import find_synsets, list_synsets
from oddly.data.source import ImageFiles
from oddly.engine.build import TEST_BATCH, build_network, choose_device, data_options, use_bf16
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import predict
from oddly.engine.feed import make_feed
from oddly.errors import InputError


def check_there(config: RunConfig, dataset: str) -> None:
    """Fail before the training, not after it, if the extra test set is missing."""
    if dataset != "imagenet":
        raise InputError(f"unknown extra test set '{dataset}'")
    find_synsets(find_folder("imagenet", data_options(config)), "val")


def try_on(config: RunConfig, folder: Path) -> dict[str, float]:
    """Top-1 and top-5 accuracy, percent, of the run in `folder` on ImageNet's validation set.

    Classes are matched by name (synsets); its classes that the run does not know are left out.
    """
    options = data_options(config)
    data = load_data(config.data, options)
    assert isinstance(data.train.images, ImageFiles)
    split = validation_set(options, data.class_names, data.train.images.size)
    device = choose_device(config.device)
    network = build_network(replace(config.with_recipe(data.recipe), weights=None), data, device)
    network.load_state_dict(load_file(folder / "model.safetensors", device=str(device)))
    feed = make_feed(data, split, TEST_BATCH, device, config.workers)
    bf16 = use_bf16(config.precision, device)
    predictions = predict(network, feed, bf16, mirror=config.mirror_test)
    return {"top1": predictions.accuracy(feed.labels), "top5": predictions.top5_accuracy}


def validation_set(options: DataOptions, class_names: Sequence[str], side: int) -> Split:
    """ImageNet's validation images, labelled by the index of their synset in `class_names`."""
    root = find_folder("imagenet", options)
    places = {name: k for k, name in enumerate(class_names)}
    synsets = [name for name in find_synsets(root, "val") if name in places]
    if not synsets:
        raise InputError(f"{root / 'val'} has none of the trained classes")
    files = list_synsets(root, "val", synsets)
    labels = torch.tensor([places[synsets[k]] for k in files.labels])
    return Split(ImageFiles(str(root), files.paths, side), labels, files.paths)
