"""Checks that fail before images are read, which takes minutes, and before a folder is made."""

from __future__ import annotations

from pathlib import Path

from oddly.core.rule import Rule, usual_counterfactual
from oddly.data.base import LabelledData
from oddly.data.labels import replace_labels
from oddly.engine.build import frozen_backbone
from oddly.engine.config import RunConfig
from oddly.methods import build_method
from oddly.methods.odd import ODD
from oddly.models import build_model


def check_early(config: RunConfig, listed: LabelledData) -> None:
    """Refuse a table of labels, a rule or a network that cannot work."""
    if config.labels:
        replace_labels(listed, Path(config.labels))
    _check_rule(config, len(listed.train))
    if config.backbone:
        frozen_backbone(config)
    elif config.model:
        build_model(config.model, len(listed.class_names), 3, config.image_size, config.dropout)


def _check_rule(config: RunConfig, examples: int) -> None:
    method, _ = build_method(config.method, config.settings)
    if isinstance(method, ODD):
        Rule.choose(
            usual=usual_counterfactual(examples, True, method.statistic),
            counterfactual=method.counterfactual,
            statistic=method.statistic,
            percentile=method.percentile,
            epochs=config.epochs,
            prune_after=method.prune_after,
            target_precision=method.target_precision,
        )
