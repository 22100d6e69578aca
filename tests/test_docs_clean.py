"""What docs/clean.md says of CIFAR-10 and of the size of images, against the stored runs."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest

from oddly.clean.settings import BACKBONE_SIZE
from tests.pages import rows, short, stored, words_of

RUNS: list[dict[str, Any]] = stored("clean_cifar10.json")["runs"]
SIZED: list[dict[str, Any]] = stored("image_size.json")["rows"]
LABELS = {
    "human, CIFAR-10N aggregate": "aggregate",
    "human, CIFAR-10N random1": "random1",
    "20 % replaced at random": "uniform20",
    "40 % replaced at random": "uniform40",
}
PAGE = words_of("docs/clean.md")


def of(labels: str) -> list[dict[str, Any]]:
    return [run for run in RUNS if run["labels"] == labels]


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def test_how_well_it_works() -> None:
    table = rows("docs/clean.md", "| labels | wrong | suspects |")
    assert [row[0] for row in table] == [*LABELS, "all right"]
    for name, *row in table[:-1]:
        first, *others = of(LABELS[name])
        found = first["oddly"]
        f1 = [run["oddly"]["f1"] for run in others]
        assert len(others) == 3
        assert row == [
            *(f"{100 * share:.1f} %" for share in (first["wrong"], found["removed"])),
            *(short(found[name]) for name in ("precision", "recall", "f1", "best_f1")),
            f"{short(min(f1))} to {short(max(f1))}",
        ]
    first, *others = (100 * run["oddly"]["removed"] for run in of("clean"))
    assert table[-1][1:3] == ["0 %", f"{first:.1f} %"]
    assert table[-1][-1] == f"suspects {min(others):.1f} to {max(others):.1f} %"


def test_how_often_suggestions_are_right() -> None:
    table = rows("docs/clean.md", "| labels | said, on average | right |")
    assert [row[0] for row in table] == list(LABELS)
    for name, *row in table:
        told = of(LABELS[name])[0]["suggestions"]
        assert row == [percent(share) for share in told.values()]
    right = [of(kind)[0]["suggestion_right"] for kind in LABELS.values()]
    assert f"was right in {100 * min(right):.0f} to {percent(max(right))}" in PAGE


def test_how_often_the_interval_held() -> None:
    held = [r["estimated_noise"][0] <= r["wrong"] <= r["estimated_noise"][2] for r in RUNS]
    assert f"within its interval in {sum(held)} of the {len(held)} runs" in PAGE


@pytest.mark.parametrize("row", rows("docs/clean.md", "| images, labels | F1 at 160"))
def test_how_many_pixels(row: list[str]) -> None:
    images, _, kind = row[0].partition(", ")
    images = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100", "Fashion-MNIST": "fashion"}[images]
    kind = {"right": "clean"}.get(kind, kind.replace("uniform ", "uniform").removesuffix(" %"))
    figure = "removed" if kind == "clean" else "f1"
    told = []
    for name in (figure, "average_precision"):
        for size in (160, 192, BACKBONE_SIZE):
            wanted = {"images": images, "labels": kind, "size": size}
            values = [r.get(name) for r in SIZED if wanted.items() <= r.items()]
            assert values, wanted
            value = None if None in values else mean(v for v in values if v is not None)
            shown = "–" if value is None else short(value)
            told.append(f"{100 * value:.1f} % suspects" if value and kind == "clean" else shown)
    assert row[1:] == told
