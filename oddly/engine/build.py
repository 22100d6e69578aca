"""From a config to the objects it names; the only reader of METHODS, DATASETS and MODELS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from oddly.core import KeepSampler
from oddly.data import load_data
from oddly.data.base import DataOptions, LabelledData, check_data
from oddly.data.labels import check_table, replace_labels
from oddly.data.noise import add_noise
from oddly.engine.config import RunConfig
from oddly.engine.embed import Progress, embed_data
from oddly.engine.feed import Feed, check_cut, choose_augment, make_feed
from oddly.engine.held_out import hold_out_test
from oddly.engine.schedule import shortest_cycle
from oddly.engine.sweep import predict_probabilities, read_features
from oddly.engine.table import TableMaker
from oddly.engine.tensorboard import check_tensorboard
from oddly.engine.trusted import TrustedFeed, hold_out_trusted
from oddly.errors import InputError
from oddly.methods import Context, Method, Stage, build_method, read_settings, settings_of
from oddly.models import build_model, check_known
from oddly.models.backbone import load_backbone, load_fine_tuned, pixel_statistics
from oddly.models.weights import load_weights

TEST_BATCH = 500  # larger than in training, without gradients; divides CIFAR's 10,000 test images
NEW_MODEL_SEEDS = 7_919  # distance between the seeds of a run's networks


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
    stages: Sequence[Stage]
    context: Context
    train_feed: Feed
    test_feed: Feed | None
    trusted_feed: TrustedFeed | None
    notes: list[str]

    @property
    def stage_config(self) -> RunConfig:
        """The run's settings as they are in its current stage."""
        config, stage = self.config, self.context.stage
        assert config.learning_rate is not None
        return replace(
            config,
            epochs=stage.epochs,
            schedule=stage.schedule or config.schedule,
            learning_rate=config.learning_rate * stage.rate,
            warmup=min(config.warmup, shortest_cycle(stage.epochs, config.restart)),
        )


def build(
    config: RunConfig, data: LabelledData | None = None, progress: Progress | None = None
) -> Parts:
    """Load the data, build model, optimiser and method; nothing is written yet."""
    if config.tensorboard:
        check_tensorboard()
    method, notes = build_method(config.method, method_settings(config))
    check_cut(method, config.frozen)  # before minutes of embedding
    device = choose_device(config.device)
    data = prepare_data(config, data, progress, device)
    check_cut(method, data.train.holds_features)
    config = fill_in(config, data, method)
    assert config.epochs
    trusted = None
    if method.needs_trusted_labels:
        data, trusted = hold_out_trusted(data, config)
    stages = [stage for stage in method.stages(config.epochs) if stage.epochs]
    model = build_network(config, data, device, stages[0].extra_outputs)
    bf16 = use_bf16(config.precision, device)
    train_feed, test_feed = build_feeds(config, data, device)
    trusted_feed = TrustedFeed.of(trusted, train_feed, bf16) if trusted else None
    tables = TableMaker(config.method, len(data.train), device)
    context = build_context(config, data, model, stages)
    context.trusted = trusted_feed
    lend_tools(context, train_feed, tables, NetworkMaker(config, data, device), bf16)
    method.setup(context)
    return Parts(
        config=config,
        data=data,
        device=device,
        bf16=bf16,
        model=model,
        optimizer=build_optimizer(config, model, method, device),
        method=method,
        stages=stages,
        context=context,
        train_feed=train_feed,
        test_feed=test_feed,
        trusted_feed=trusted_feed,
        notes=[*notes, *data.notes, *tables.notes],
    )


def check_early(config: RunConfig) -> None:
    """Raise errors that can be found without reading the images."""
    if config.model:
        check_known(config.model)
    if config.labels:
        check_table("labels", Path(config.labels))


def fill_in(config: RunConfig, data: LabelledData, method: Method) -> RunConfig:
    """The config with every default filled in, from the data and from the method."""
    if config.fine_tune:
        config = replace(config, model=config.backbone)
    settings = read_settings(config.method, method)
    return replace(config.with_recipe(data.recipe), settings=settings)


def method_settings(config: RunConfig) -> Mapping[str, Any]:
    """The method's settings; sentinels on frozen features, where the final layer tells nothing."""
    if config.frozen and "counterfactual" in settings_of(config.method):
        return {"counterfactual": "sentinels", **config.settings}
    return config.settings


def data_options(config: RunConfig, progress: Progress | None = None) -> DataOptions:
    """The loader's options in the config."""
    return DataOptions(
        data_dir=Path(config.data_dir) if config.data_dir else None,
        image_size=config.image_size,
        download=config.download,
        skip_unreadable=config.skip_unreadable,
        pool_splits=config.pool_splits,
        decode=not config.frozen,
        from_scratch=not config.backbone,
        progress=progress,
    )


def prepare_data(
    config: RunConfig,
    data: LabelledData | None = None,
    progress: Progress | None = None,
    device: torch.device | None = None,
) -> LabelledData:
    """The data with the labels to train on: replaced by `labels`, then corrupted by `noise`."""
    if data is None:
        data = load_data(config.data, data_options(config, progress))
    else:
        check_data(data)
    if config.frozen and not data.train.holds_features:
        data = embed(config, data, device or torch.device("cpu"), progress)
    if config.backbone and config.fine_tune:
        mean, std = pixel_statistics(config.backbone, config.weights or "pretrained")
        data = replace(data, mean=mean, std=std)
    data = choose_augment(data, config)
    if config.labels:
        data = replace_labels(data, Path(config.labels))
    data = hold_out_test(data, config)  # before adding noise, which is for training labels only
    if config.noise:
        generator = torch.Generator().manual_seed(config.noise_seed)
        data = add_noise(data, config.noise_kind, config.noise, generator)
    return data


def embed(
    config: RunConfig, data: LabelledData, device: torch.device, progress: Progress | None = None
) -> LabelledData:
    """The data with features of a frozen backbone instead of images."""
    size, skip = config.image_size, config.skip_unreadable
    return embed_data(data, frozen_backbone(config), size, device, skip, progress)


def frozen_backbone(config: RunConfig) -> nn.Module:
    assert config.backbone
    return load_backbone(config.backbone, config.weights or "pretrained", config.image_size)


def build_network(
    config: RunConfig,
    data: LabelledData,
    device: torch.device,
    extra_outputs: int = 0,
    number: int = 0,
) -> nn.Module:
    """The `number`-th network of the run, with new weights."""
    assert config.model is not None
    channels, size, _ = data.image_shape
    torch.manual_seed(config.init_seed + NEW_MODEL_SEEDS * number)
    outputs = len(data.class_names) + extra_outputs
    if config.backbone and config.fine_tune:
        weights = config.weights or "pretrained"
        model = load_fine_tuned(config.backbone, weights, outputs, size, config.dropout)
    else:
        model = build_model(config.model, outputs, channels, size, config.dropout)
        if config.weights and not config.backbone:
            load_weights(model, config.weights, config.model)
    return model.to(device).to(memory_format=torch.channels_last)


class NetworkMaker:
    """Makes further networks for a run, each with its own initial weights."""

    def __init__(self, config: RunConfig, data: LabelledData, device: torch.device) -> None:
        self.config, self.data, self.device, self.made = config, data, device, 0

    def __call__(self) -> nn.Module:
        self.made += 1
        # Counted from 100, because stages with fresh weights use the numbers below.
        return build_network(self.config, self.data, self.device, number=99 + self.made)


def build_context(
    config: RunConfig, data: LabelledData, model: nn.Module, stages: Sequence[Stage]
) -> Context:
    return Context(
        model=model,
        sampler=KeepSampler(len(data.train), config.order_seed),
        num_examples=len(data.train),
        num_classes=len(data.class_names),
        epochs=sum(stage.epochs for stage in stages),
        seed=config.order_seed,
        batch_size=config.batch_size or 0,
        stage=stages[0],
        decided=data.decided,
        pictures=data.pictures,
    )


def lend_tools(
    context: Context, feed: Feed, tables: TableMaker, networks: NetworkMaker, bf16: bool
) -> None:
    """Give the context the functions that a method may call."""
    classes = context.num_classes
    context.given_labels = feed.labels
    context.probabilities = partial(
        predict_probabilities, feed=feed, num_classes=classes, bf16=bf16
    )
    context.features = partial(read_features, feed=feed, bf16=bf16)
    context.table, context.new_model = tables.make, networks


def build_feeds(
    config: RunConfig, data: LabelledData, device: torch.device
) -> tuple[Feed, Feed | None]:
    """A feed for training, and one for testing if there is a test set."""
    assert config.batch_size
    train = make_feed(data, data.train, config.batch_size, device, config.workers)
    if not data.test:
        return train, None
    batch_size = max(config.batch_size, TEST_BATCH)
    return train, make_feed(data, data.test, batch_size, device, config.workers)


def build_optimizer(
    config: RunConfig, model: nn.Module, method: Method, device: torch.device
) -> torch.optim.Optimizer:
    """SGD over the network and the method's extra parameters."""
    groups = [{"params": model.parameters()}, *method.parameter_groups()]
    # The schedule overwrites `lr` in each step, except where a group has its `own_lr`.
    groups = [group | {"own_lr": group["lr"]} if "lr" in group else group for group in groups]
    return torch.optim.SGD(
        groups,
        lr=config.learning_rate or 0.0,
        momentum=config.momentum,
        nesterov=config.nesterov and config.momentum > 0,
        weight_decay=config.weight_decay or 0.0,
        fused=True if device.type == "cuda" else None,
    )


def choose_device(name: str) -> torch.device:
    """The device of this name, which must be available; `auto` is the best one available."""
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
