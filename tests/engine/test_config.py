from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from oddly.data.base import Recipe
from oddly.engine.config import RunConfig, sort_options
from oddly.errors import InputError


def test_options_are_fields_or_settings_of_the_method() -> None:
    config = RunConfig.from_options("digits", {"epochs": 3, "percentile": 20, "alpha": 0.5})
    assert config.epochs == 3
    assert config.settings == {"percentile": 20, "alpha": 0.5}


def test_a_setting_may_bear_a_fields_name() -> None:
    config = RunConfig.from_options("digits", {"warmup": 2.0, "settings": {"warmup": "7"}})
    assert config.warmup == 2.0 and config.settings == {"warmup": "7"}


def test_seed_sets_the_seeds_not_named() -> None:
    chosen, settings = sort_options({"seed": 7, "init_seed": 1})
    assert chosen == {"noise_seed": 7, "init_seed": 1, "order_seed": 7} and not settings


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epoch": 3}, "unknown option 'epoch'; did you mean 'epochs'?"),
        ({"percentil": 3}, "unknown option 'percentil'; did you mean 'percentile'?"),
        ({"overwite": True}, "unknown option 'overwite'; did you mean 'overwrite'?"),
        ({"fold": 3}, "unknown option 'fold'; "),
        (
            {"method": "confident_learning", "fold": 3},
            "unknown option 'fold'; did you mean 'folds'?",
        ),
        ({"method": "od", "fold": 3}, "unknown method 'od'; did you mean 'odd'?"),
        ({"seed": -1}, "seed must be within 0..4294967295, got -1"),
        ({"seed": "a"}, "seed must be int, got 'a'"),
    ],
)
def test_a_name_that_nobody_knows_or_a_bad_seed(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        sort_options(options)
    assert str(caught.value).startswith(told) and len(str(caught.value)) < 80
    assert ("folds" in str(caught.value)) == (options.get("method") == "confident_learning")


def test_paths_become_text() -> None:
    assert RunConfig.from_options("cifar10", {"data_dir": Path("a/b")}).data_dir == "a/b"


def test_recipe_fills_only_gaps() -> None:
    recipe = Recipe("resnet8", 12, 32, 0.05, 1e-4)
    config = RunConfig("digits", epochs=3, weight_decay=0.0).with_recipe(recipe)
    assert (config.model, config.epochs, config.batch_size) == ("resnet8", 3, 32)
    assert (config.learning_rate, config.weight_decay) == (0.05, 0.0)


def test_config_survives_its_file() -> None:
    config = RunConfig("digits", noise=0.4, settings={"percentile": 10.0}, epochs=3)
    text = json.dumps({**config.to_dict(), "format": 1})
    assert RunConfig.from_dict(json.loads(text)) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 1.5}, "noise must be within 0..1, got 1.5"),
        ({"noise": math.nan}, "noise must be"),
        ({"noise_kind": "unifrom"}, "unknown noise kind 'unifrom'; did you mean 'uniform'?"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'; did you mean 'cosine'?"),
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"precision": "fp16"}, "unknown precision 'fp16'"),
        ({"epochs": 0}, "epochs must be finite and at least 1, got 0"),
        ({"epochs": 2.5}, "epochs must be int, got 2.5"),
        ({"epochs": "ten"}, "epochs must be int, got 'ten'"),
        ({"epochs": True}, "epochs must be int, got True"),
        ({"batch_size": -1}, "batch_size must be"),
        ({"learning_rate": math.inf}, "learning_rate must be finite"),
        ({"weight_decay": -1e-4}, "weight_decay must be"),
        ({"epochs": 5, "warmup": 6.0}, "warmup must be within 0..5, got 6"),
        (
            {"epochs": 9, "restart": 4, "warmup": 4.5},
            "warmup 4.5 is too long: with restart 4 of 9",
        ),
        ({"epochs": 9, "restart": 7, "warmup": 3.0}, "use a warmup within 0..2"),
        ({"init_seed": -1}, "init_seed must be within 0..4294967295, got -1"),
        ({"image_size": 2}, "image_size must be within 4..4096"),
        (
            {"backbone": "x", "noise": 0.1, "noise_kind": "instance"},
            "noise instance needs images and cannot be used with a frozen backbone",
        ),
        ({"nesterov": 1}, "nesterov must be bool, got 1"),
        ({"model": 8}, "model must be str, got 8"),
    ],
)
def test_bad_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        RunConfig.from_options("digits", options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
