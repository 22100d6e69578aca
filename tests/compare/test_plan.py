"""What a comparison runs, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from oddly.compare import Plan
from oddly.errors import InputError


def make(methods: tuple[str, ...] = ("erm", "odd"), **more: Any) -> Plan:
    return Plan("synthetic", methods, **{"seeds": 3, "epochs": 40, "equal_cost": False, **more})


def test_equal_epochs_ask_every_method_for_the_same() -> None:
    assert [make().epochs_of(name) for name in ("erm", "ren", "confident_learning")] == [40] * 3


@pytest.mark.parametrize(
    ("method", "epochs"),
    [
        ("erm", 40),
        ("luo", 20),  # two views
        ("ren", 13),  # 3 passes: 39
        ("co_teaching", 20),  # two networks
        ("confident_learning", 8),  # 5 folds of 4/5 and one run: 8 x 5
        ("aum", 20),  # two halves and one run: 10 + 10 + 20
        ("loss_correction", 32),  # a quarter before it: 8 + 32
    ],
)
def test_equal_cost_counts_stages_folds_and_networks(method: str, epochs: int) -> None:
    plan = make((method,), equal_cost=True)
    assert plan.epochs_of(method) == epochs
    assert plan.passes(method, epochs) <= 40 < plan.passes(method, epochs + 1)


def test_settings_count() -> None:
    plan = make(
        ("confident_learning",), equal_cost=True, settings={"confident_learning": {"folds": 3}}
    )
    assert plan.epochs_of("confident_learning") == 13  # 3 x 2/3 + 1 = 3 passes an epoch


def test_one_epoch_is_the_least() -> None:
    assert make(("divide_mix",), epochs=2, equal_cost=True).epochs_of("divide_mix") == 1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"methods": ()}, "needs at least one method"),
        ({"methods": ("erm", "ood")}, "unknown method 'ood'; did you mean 'odd'?"),
        ({"methods": ("erm", "erm")}, "contains a method twice"),
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
        ({"settings": {"gce": {"q": 0.5}}}, "--set gce.… is for a method that is not in --methods"),
    ],
)
def test_what_cannot_be_planned(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make(**more)
    assert message in str(caught.value)
