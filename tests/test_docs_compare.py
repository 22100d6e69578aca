"""docs/compare.md says what the stored comparison and costs hold, and names every method."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

import pytest

from oddly.compare import markdown
from oddly.compare.table import FIGURES
from oddly.methods import METHODS
from tests.pages import ROOT, rows, short, stored

PAGE = "docs/compare.md"
CIFAR10 = "compare_cifar10_uniform40.json"
COMPARISONS = sorted(file.name for file in (ROOT / "oddly/results").glob("compare_*.json"))


def best_first(name: str) -> list[dict[str, Any]]:
    return sorted(stored(name)["rows"], key=lambda row: -row["test_accuracy"]["mean"])


def test_digits_have_every_method() -> None:
    result = stored("compare_digits_uniform40.json")
    assert {row["method"] for row in result["rows"]} == set(METHODS)
    assert result["plan"]["seeds"] == 3


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_tables(name: str) -> None:
    result = stored(name)
    shown = best_first(name) if name == CIFAR10 else result["rows"]
    table = markdown(shown, leave_out=("removed", "seconds", "cost"))
    page = (ROOT / PAGE).read_text().replace(" ¹ |", " |")  # rows of methods mended since
    assert table in page
    assert not {"data_dir", "device"} & set(result["plan"]["options"])
    for row in result["rows"]:
        for name in FIGURES.keys() & row.keys():
            values = row[name]["values"]
            if len(values) > 1:
                assert abs(row[name]["mean"] - mean(values)) < 1e-9
                assert abs(row[name]["std"] - stdev(values)) < 1e-9


@pytest.mark.parametrize(("row", "name"), [(0, "compare_digits_uniform40.json"), (1, CIFAR10)])
def test_the_results_in_short(row: int, name: str) -> None:
    data, plain, ours, best = rows(PAGE, "| | plain training | ODD (our default) | best |")[row]
    found = {each["method"]: each for each in stored(name)["rows"]}
    assert data.endswith(f", {len(found)} methods")
    accuracy = {method: f"{each['test_accuracy']['mean']:.2f}" for method, each in found.items()}
    f1 = {method: short(found[method]["f1"]["mean"]) for method in ("odd", "elr")}
    assert (plain, ours) == (f"{accuracy['erm']} %", f"{accuracy['odd']} %, F1 {f1['odd']}")
    most = [method for method, one in accuracy.items() if one == max(accuracy.values(), key=float)]
    assert most == (["odd", "elr"] if row == 0 else ["elr"])
    assert f"ELR, {accuracy['elr']} %" in best and best.endswith(f"F1 {f1['elr']}")


def test_who_beats_plain_training_on_cifar10() -> None:
    """By more than the standard deviation of either; what the page says below the table."""
    assert {row["runs"] for row in best_first(CIFAR10)} == {3}
    figures = {row["method"]: row["test_accuracy"] for row in best_first(CIFAR10)}
    plain, gains = figures["erm"], {}
    for method, figure in figures.items():
        gain = figure["mean"] - plain["mean"]
        if abs(gain) > max(figure["std"], plain["std"]):
            gains[method] = gain
    assert figures.keys() - gains.keys() == {"erm", "cleannet"}
    assert {method for method, gain in gains.items() if gain < 0} == {"loss_correction", "lccn"}
    assert {method for method, gain in gains.items() if 0 < gain < 1} == {
        "dropout",
        "gce_truncated",
    }
    assert sum(gain > 2 for gain in gains.values()) == 16


def test_what_the_readme_says_of_cifar10() -> None:
    best, *_ = best_first(CIFAR10)
    found = {row["method"]: row for row in best_first(CIFAR10)}
    accuracy = {method: f"{row['test_accuracy']['mean']:.1f} %" for method, row in found.items()}
    f1 = {method: short(found[method]["f1"]["mean"]) for method in ("odd", best["method"])}
    assert (
        f"plain training {accuracy['erm']}, ODD {accuracy['odd']} with F1 {f1['odd']}, and the best"
        f" of {len(found)}, ELR, {accuracy['elr']} with F1 {f1['elr']}."
    ) in " ".join((ROOT / "README.md").read_text().split())


def test_the_curves_on_cifar10() -> None:
    """They end in the table's figures, and go as the page tells."""
    curves = stored(CIFAR10)["curves"]
    accuracy = {method: curve["test_accuracy"] for method, curve in curves.items()}
    for row in best_first(CIFAR10):
        assert len(accuracy[row["method"]]) == row["epochs"]
        assert abs(accuracy[row["method"]][-1] - row["test_accuracy"]["mean"]) < 0.006
    assert curves["erm"]["train_loss"][-1] == 1.129
    assert max(accuracy["erm"]) == accuracy["erm"][21] == 79.93
    behind = [
        mixed < plain for mixed, plain in zip(accuracy["mixup"], accuracy["erm"], strict=True)
    ]
    assert behind[:13] == [True] * 12 + [False]
    assert (accuracy["odd"][22:24], accuracy["odd_mixup"][23]) == ([77.89, 85.24], 83.8)
    assert accuracy["lccn"][6:8] == [73.33, 41.94]
    assert accuracy["dmi"][28] == 79.2
    assert curves["dropout"]["train_loss"][-1] == 1.181


def test_the_table_of_costs() -> None:
    stored_costs = stored("method_cost_digits.json")
    table = rows(PAGE, "| method | measured | declared | expected |")
    assert [row[0] for row in table] == list(stored_costs["factors"])
    for name, measured, declared, _ in table:
        assert measured == f"{stored_costs['factors'][name]:.2f}"
        assert declared == f"{stored_costs['declared'][name]:.2f}"


def test_every_method_is_described() -> None:
    described = {row[0].strip("`") for row in rows(PAGE, "| method | paper | needs |")}
    assert described >= set(METHODS)
