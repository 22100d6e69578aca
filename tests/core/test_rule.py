"""What is filled in where a setting was left open, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oddly.core.rule import PERCENTILES, Rule, usual_counterfactual
from oddly.errors import InputError


def choose(**options: Any) -> Rule:
    """Forty epochs and a dataset that can be planted, unless told otherwise."""
    open_settings: dict[str, Any] = {
        "usual": "sentinels",
        "counterfactual": None,
        "statistic": None,
        "percentile": None,
        "epochs": 40,
        "prune_after": None,
        "target_precision": None,
    }
    return Rule.choose(**{**open_settings, **options})


def test_sentinels_where_they_can_be_planted() -> None:
    assert choose() == Rule("sentinels", "ema", None, 40, None, None)


def test_the_weights_where_they_cannot() -> None:
    assert choose(usual="weights") == Rule("weights", "ema", 10.0, 40, 15, None)


@pytest.mark.parametrize(
    ("examples", "can_plant", "statistic", "expected"),
    [
        (100, True, None, "sentinels"),
        (99, True, None, "wrong_label"),
        (99, True, "last", "wrong_label"),
        (99, True, "ema", "weights"),  # wrong labels go by the last epoch alone
        (100, False, None, "weights"),
        (99, False, None, "weights"),
    ],
)
def test_what_is_usual(
    examples: int, can_plant: bool, statistic: str | None, expected: str
) -> None:
    assert usual_counterfactual(examples, can_plant, statistic) == expected


def test_wrong_labels_go_by_the_last_epoch() -> None:
    assert choose(counterfactual="wrong_label") == Rule("wrong_label", "last", 10.0, 40, 15, None)


@pytest.mark.parametrize("counterfactual", PERCENTILES)
def test_what_is_said_is_taken(counterfactual: str) -> None:
    rule = choose(
        usual="weights",
        counterfactual=counterfactual,
        statistic="last",
        percentile=33.0,
        prune_after=7,
    )
    assert rule == Rule(counterfactual, "last", 33.0, 40, 7, None)


@pytest.mark.parametrize("zero", [0, 0.0])
def test_percentile_zero_is_not_an_open_one(zero: float) -> None:
    assert choose(percentile=zero).percentile == 0


@pytest.mark.parametrize("counterfactual", ["weights", "wrong_label"])
@pytest.mark.parametrize(
    ("epochs", "expected"), [(200, 75), (40, 15), (96, 36), (8, 3), (2, 1), (1, 1)]
)
def test_the_paper_prunes_after_three_eighths(
    counterfactual: str, epochs: int, expected: int
) -> None:
    assert choose(counterfactual=counterfactual, epochs=epochs).prune_after == expected


def test_with_e_given_the_epochs_need_not_be() -> None:
    assert choose(epochs=None, prune_after=3).prune_after == 3
    assert choose(epochs=3, prune_after=3).prune_after == 3  # the last, too


@pytest.mark.parametrize("precision", [0.01, 0.5, 0.99])
def test_a_target_precision(precision: float) -> None:
    assert choose(target_precision=precision).target_precision == precision


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"counterfactual": "guess"},
            "counterfactual must be one of sentinels, weights, wrong_label, got 'guess'",
        ),
        ({"percentile": 101.0}, r"percentile must be within 0\.\.100, got 101"),
        ({"percentile": -0.5}, r"percentile must be within 0\.\.100, got -0\.5"),
        ({"percentile": math.nan}, r"percentile must be within 0\.\.100, got nan"),
        ({"epochs": None}, "pass epochs=… so that E can be found, or prune_after=E"),
        ({"prune_after": 0}, r"prune_after must be at least 1 \(finished epochs\), got 0"),
        ({"prune_after": 41}, "prune_after = 41 is beyond the 40 epochs"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        (
            {"counterfactual": "wrong_label", "statistic": "ema"},
            "counterfactual wrong_label only works with statistic last",
        ),
        (
            {"counterfactual": "weights", "target_precision": 0.9},
            "target_precision needs sentinels",
        ),
        ({"usual": "weights", "target_precision": 0.9}, "target_precision needs"),
        ({"target_precision": 0.0}, "target_precision must be between 0 and 1, got 0"),
        ({"target_precision": 1.0}, "target_precision must be between 0 and 1, got 1"),
        ({"target_precision": 90.0}, "target_precision must be between 0 and 1, got 90"),
        ({"target_precision": math.nan}, "target_precision must be between 0 and 1, got nan"),
        ({"target_precision": 0.9, "percentile": 50.0}, "percentile or target_precision, not both"),
        ({"prune_after": 3.5}, "prune_after must be a whole number, got 3.5"),
        ({"epochs": "15"}, "epochs must be a whole number, got '15'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        choose(**options)
    assert "\n" not in str(caught.value)
