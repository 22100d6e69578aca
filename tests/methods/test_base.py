"""The interface's defaults, and methods built from names and texts."""

from __future__ import annotations

import math
from dataclasses import fields, make_dataclass
from typing import Any

import pytest
import torch
from torch import nn

from oddly.core import KeepSampler
from oddly.errors import InputError
from oddly.methods import METHODS, PRESETS, build_method, settings_of
from oddly.methods.base import Batch, Context, Method, StepOutput
from oddly.methods.odd import ODD, ODDMixup


class OnlyLoss(Method):
    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        return StepOutput(model(batch.inputs).sum())


def test_only_loss_is_required() -> None:
    with pytest.raises(TypeError, match="abstract method '?loss"):
        Method()  # type: ignore[abstract]
    method = OnlyLoss()
    context = Context(nn.Linear(1, 2), KeepSampler(3), 3, 2, epochs=1, seed=0)
    for hook in (method.setup, method.begin_epoch, method.end_epoch):
        hook(context)
    method.load_state_dict(method.state_dict())
    assert method.state_dict() == {}
    assert method.verdict is None
    assert method.extra_seconds == 0.0
    assert method.views == 1


def test_a_batch_holds_no_true_label() -> None:
    assert {field.name for field in fields(Batch)} == {"index", "inputs", "labels", "views"}


def test_a_batch_cannot_be_altered() -> None:
    batch = Batch(torch.arange(2), torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(AttributeError):
        batch.labels = batch.index  # type: ignore[misc]


def test_settings_of_a_method_with_their_types() -> None:
    assert settings_of("erm") == {}
    mixing = {"alpha": "float", "cut": "bool", "smoothing": "float"}
    assert settings_of("mixup") == mixing
    assert settings_of("odd") == {
        "prune_after": "int | None",
        "percentile": "float | None",
        "counterfactual": "str | None",
        "statistic": "str | None",
        "target_precision": "float | None",
        "draws": "int",
        "head": "str | None",
        "strict": "bool",
        "rounds": "int",
        "retrain": "bool",
    }
    assert settings_of("odd_mixup") == {**settings_of("odd"), **mixing}


def test_settings_of_a_file_that_evaluates_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without `from __future__ import annotations`: types there are no text."""
    settings = [("sharpness", float, 2.0), ("steps", int | None, None), ("soft", bool, False)]
    monkeypatch.setitem(METHODS, "own", make_dataclass("Own", settings, bases=(OnlyLoss,)))
    assert settings_of("own") == {"sharpness": "float", "steps": "int | None", "soft": "bool"}
    method, _ = build_method("own", {"sharpness": "0.5", "steps": "none", "soft": "yes"})
    assert [getattr(method, name) for name, *_ in settings] == [0.5, None, True]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_by_its_name(name: str) -> None:
    method, notes = build_method(name, {})
    assert type(method) is METHODS[name]
    assert notes == []


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("prune_after", "15", 15),
        ("prune_after", 15, 15),
        ("prune_after", "none", None),
        ("prune_after", None, None),
        ("percentile", "7.5", 7.5),
        ("percentile", 7, 7.0),
        ("percentile", "none", None),
        ("counterfactual", "weights", "weights"),
        ("counterfactual", "none", None),
        ("statistic", "last", "last"),
        ("statistic", "none", None),
        ("target_precision", "0.9", 0.9),
        ("target_precision", "none", None),
        ("head", "fc.0", "fc.0"),
        ("head", "none", None),
        ("strict", "true", True),
        ("strict", "No", False),
        ("strict", "1", True),
        ("strict", False, False),
        ("draws", "500", 500),
    ],
)
def test_settings_are_typed(setting: str, value: Any, expected: Any) -> None:
    method, _ = build_method("odd", {setting: value})
    assert getattr(method, setting) == expected
    assert type(getattr(method, setting)) is type(expected)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("prune_after", "soon", "setting 'prune_after' must be int, got 'soon'"),
        ("draws", "2.5", "setting 'draws' must be int, got '2.5'"),
        ("draws", 2.5, "setting 'draws' must be int, got '2.5'"),
        ("draws", None, r"setting 'draws' needs a value \(int\)"),
        ("percentile", "ten", r"setting 'percentile' must be float, got 'ten'"),
        ("percentile", "nan", r"odd's percentile must be within 0..100, got nan"),
        ("target_precision", "nan", r"odd's target_precision must be finite, got nan"),
        (
            "target_precision",
            -math.inf,
            r"odd's target_precision must be finite, got -inf",
        ),
        ("strict", "maybe", "setting 'strict' must be bool, got 'maybe'"),
        ("before", "erm", "unknown setting of odd 'before'"),
    ],
)
def test_bad_values_are_told(setting: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_method("odd", {setting: value})


@pytest.mark.parametrize(
    ("name", "setting", "value", "message"),
    [
        ("aum", "percentile", 100.5, "aum's percentile must be within 0..100, got 100.5"),
        ("aum", "search_share", -0.1, "aum's search_share must be within 0..1, got -0.1"),
        ("curriculum", "components", 0, "curriculum's components must be at least 1, got 0"),
        ("joint_opt", "window", "0", "joint_opt's window must be at least 1, got 0"),
        ("divide_mix", "ramp", 0, "divide_mix's ramp must be at least 1, got 0"),
        ("cleannet", "rate", -1, "cleannet's rate must be at least 0, got -1"),
        ("mentornet_dd", "rate", -1, "mentornet_dd's rate must be at least 0, got -1"),
        ("confident_learning", "filter_by", "both ", "unknown filter_by 'both '; did you mean"),
    ],
)
def test_what_would_fail_after_hours_is_told_at_once(
    name: str, setting: str, value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        build_method(name, {setting: value})


def test_bounds_themselves_are_within() -> None:
    for name, kind in METHODS.items():
        assert set(kind.ranges) <= set(settings_of(name))
        for setting, (low, high) in kind.ranges.items():
            for bound in (low, high if math.isfinite(high) else 10**6):
                method, _ = build_method(name, {setting: bound})
                assert getattr(method, setting) == bound


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown method 'mixp'; did you mean 'mixup'?"):
        build_method("mixp", {})
    with pytest.raises(InputError, match="unknown setting of odd 'percentil'; did you mean 'perc"):
        build_method("odd", {"percentil": 5})
    with pytest.raises(InputError, match="unknown method 'zzz'; known: aum, .*erm, .*odd"):
        build_method("zzz", {})


def test_what_only_odd_knows_is_noted_and_ignored() -> None:
    method, notes = build_method("erm", {"percentile": 5, "prune_after": "12"})
    assert method == METHODS["erm"]()
    assert notes == [
        "ignored setting 'percentile': erm has no such setting",
        "ignored setting 'prune_after': erm has no such setting",
    ]


def test_the_papers_preset_is_made_of_odds_settings() -> None:
    method, notes = build_method("odd", PRESETS["paper"])
    assert isinstance(method, ODD)
    assert (method.counterfactual, method.statistic, method.percentile) == ("weights", "last", 10.0)
    assert notes == []


def test_alpha_reaches_the_mixup_inside() -> None:
    method, _ = build_method("odd_mixup", {"alpha": "0.3"})
    assert isinstance(method, ODDMixup)
    assert method.after.alpha == 0.3  # type: ignore[attr-defined]
