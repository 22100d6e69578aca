"""From a config to the objects it names; the only reader of METHODS, DATASETS and MODELS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from oddly.core import KeepSampler
from oddly.data import load_data
from oddly.data.base import DataOptions, LabelledData
from oddly.data.labels import replace_labels
from oddly.data.noise import add_noise
from oddly.engine.config import RunConfig
from oddly.engine.feed import Feed, make_feed
from oddly.errors import InputError
from oddly.methods import Context, Method, build_method
from oddly.models import build_model

TEST_BATCH = 512  # without gradients more fits


@dataclass
class Parts:
    """Everything a run is made of, before its first step."""

    config: RunConfig
    data: LabelledData
    device: torch.device
    bf16: bool
    model: nn.Module
    optimizer: torch.optim.Optimizer
    method: Method
    context: Context
    train_feed: Feed
    test_feed: Feed | None
    notes: list[str]


def build(config: RunConfig, data: LabelledData | None = None) -> Parts:
    """Load the data, build model, optimiser and method; nothing is written yet."""
    method, notes = build_method(config.method, config.settings)
    device = choose_device(config.device)
    data = prepare_data(config, data)
    config = config.with_recipe(data.recipe)
    assert config.model and config.epochs and config.batch_size
    assert config.learning_rate is not None and config.weight_decay is not None
    channels, size, _ = data.image_shape
    torch.manual_seed(config.init_seed)
    model = build_model(config.model, len(data.class_names), channels, size, config.dropout)
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    sampler = KeepSampler(len(data.train), config.order_seed)
    context = Context(
        model, sampler, len(data.train), len(data.class_names), config.epochs, config.order_seed
    )
    method.setup(context)
    feeds = [
        make_feed(data, split, batch_size, device, config.workers) if split else None
        for split, batch_size in (
            (data.train, config.batch_size),
            (data.test, max(config.batch_size, TEST_BATCH)),
        )
    ]
    assert feeds[0]
    return Parts(
        config=config,
        data=data,
        device=device,
        bf16=use_bf16(config.precision, device),
        model=model,
        optimizer=build_optimizer(config, model, device),
        method=method,
        context=context,
        train_feed=feeds[0],
        test_feed=feeds[1],
        notes=[*notes, *data.notes],
    )


def prepare_data(config: RunConfig, data: LabelledData | None = None) -> LabelledData:
    """The data under the labels that training will see: replaced, then corrupted, as asked."""
    if data is None:
        options = DataOptions(
            data_dir=Path(config.data_dir) if config.data_dir else None,
            image_size=config.image_size,
            download=config.download,
            skip_unreadable=config.skip_unreadable,
        )
        data = load_data(config.data, options)
    if config.labels:
        data = replace_labels(data, Path(config.labels))
    if config.noise:
        generator = torch.Generator().manual_seed(config.noise_seed)
        data = add_noise(data, config.noise_kind, config.noise, generator)
    return data


def build_optimizer(
    config: RunConfig, model: nn.Module, device: torch.device
) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        model.parameters(),
        lr=config.learning_rate or 0.0,
        momentum=config.momentum,
        nesterov=config.nesterov and config.momentum > 0,
        weight_decay=config.weight_decay or 0.0,
        fused=True if device.type == "cuda" else None,
    )


def choose_device(name: str) -> torch.device:
    """`auto` takes the best there is; a device by name must exist."""
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, available in there.items() if available)
    if not there[name]:
        raise InputError(f"device '{name}' is not available on this machine; use --device auto")
    return torch.device(name)


def use_bf16(precision: str, device: torch.device) -> bool:
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bf16"
