"""The tables of rivals, in docs/detection.md, docs/how_it_works.md and the README."""

from __future__ import annotations

import re
from statistics import mean, stdev

import pytest

from oddly.benchmarks.detection.cases import CASES as FILLED
from tests.pages import CASES, ROOT, detected, rows, short, shown_or_not_run, stored, words_of


@pytest.mark.parametrize(
    ("row", "case", "method"),
    [
        (0, "cifar10-uniform-40", "erm"),
        (1, "cifar10-uniform-40", "cleanlab"),
        (2, "cifar10-uniform-40", "odd_paper"),
        (3, "cifar10-uniform-40", "aum"),
        (4, "cifar10-uniform-40", "erm_gmm"),
        (5, "cifar10-uniform-40", "odd"),
        (6, "cifar10-asymmetric-40", "erm"),
        (7, "cifar10-asymmetric-40", "odd_paper"),
        (8, "cifar10-asymmetric-40", "cleanlab"),
        (9, "cifar10-asymmetric-40", "odd"),
        (10, "cifar10-instance-40", "erm"),
        (11, "cifar10-instance-40", "cleanlab"),
        (12, "cifar10-instance-40", "odd_paper"),
        (13, "cifar10-instance-40", "odd"),
        (14, "cifar10n-aggregate", "erm"),
        (15, "cifar10n-aggregate", "cleanlab"),
        (16, "cifar10n-aggregate", "odd_paper"),
        (17, "cifar10n-aggregate", "erm_gmm"),
        (18, "cifar10n-aggregate", "aum"),
        (19, "cifar10n-aggregate", "odd"),
    ],
)
def test_the_table_of_the_readme(row: int, case: str, method: str) -> None:
    found = detected(case, method)
    cells = rows("README.md", "| test accuracy | precision | recall | F1 |")[row]
    accuracy = found["test_accuracy"]
    assert cells[2] == ("–" if accuracy is None else f"{accuracy:.1f} %")
    for cell, figure in zip(cells[3:], ("precision", "recall", "f1"), strict=True):
        nothing_removed = not found["removed_fraction"]
        assert cell == ("–" if nothing_removed else f"{found[figure]:.2f}".lstrip("0"))


def test_no_accuracy_of_the_readme_is_bold_without_plain_training_beside_it() -> None:
    lines = (ROOT / "README.md").read_text().split("| test accuracy | precision |", 1)[1]
    kinds: list[list[str]] = []
    for line in lines.splitlines()[2:]:
        if not line.startswith("|"):
            break
        if line.split("|")[1].strip():
            kinds.append([])
        kinds[-1].append(line)
    assert len(kinds) == 4
    for kind in kinds:
        bold = any("**" in line.split("|")[3] for line in kind)
        assert bold == any("plain training" in line for line in kind), kind[0]


RIVALS = ("odd", "odd_paper", "cleanlab", "predicted", "aum", "erm_gmm")


@pytest.mark.parametrize(
    ("heading", "figure", "methods", "first"),
    [
        ("| AUM | two Gaussians |\n|---|---|---|---|---|---|---|---|\n", "f1", RIVALS, 2),
        ("| two Gaussians | final losses |\n", "average_precision", (*RIVALS, "erm"), 1),
    ],
)
def test_the_tables_of_rivals(
    heading: str, figure: str, methods: tuple[str, ...], first: int
) -> None:
    """The highest of a row, and no other, is bold."""
    lines = (ROOT / "docs/detection.md").read_text().split(heading, 1)[1].split("\n\n")[0]
    table = [line.strip("| ").split(" | ") for line in lines.splitlines() if line[:2] == "| "]
    heads = "CIFAR-10N aggregate, frozen features"
    cases = {**CASES, heads: "cifar10n-aggregate-features"}
    assert {row[0] for row in table} == {name for name in cases if "ConvNeXt" not in name}
    for name, *cells in table:
        if first == 2:
            assert cells.pop(0) == f"{100 * detected(cases[name], 'odd')['error_rate']:.1f} %"
        shown = [shown_or_not_run(cases[name], m, lambda it: short(it[figure])) for m in methods]
        most = max(value for value in shown if value != "not run")
        assert cells == [
            "–" if value == "not run" else f"**{value}**" if value == most else value
            for value in shown
        ]


def test_what_finding_them_costs() -> None:
    page = words_of("docs/detection.md")
    *whole, _ = CASES.values()  # without the ConvNeXt

    def spans(method: str) -> list[str]:
        there = [f"{case}--{method}--seed0.json" for case in whole]
        there = [name for name in there if (ROOT / "oddly/results/detection" / name).exists()]
        costs = [stored(f"detection/{name}")["cost"] for name in there]
        ends = [
            sorted({f"{end(c[key] for c in costs):.2f}" for end in (min, max)})
            for key in ("factor", "to_model")
        ]
        return [" to ".join(each.removeprefix("0") for each in pair) for pair in ends]

    (ours, _), *others = (spans(method) for method in ("odd", "cleanlab", "aum", "erm_gmm"))
    alone, whole_way = zip(*others, strict=True)
    assert f"ours takes {ours}, since" in page
    assert "cleanlab takes {}, AUM {} and two Gaussians {}, without".format(*alone) in page
    assert "on what they keep it is {}, {} and {}.".format(*whole_way) in page
    seeds = [short(detected("cifar10n-aggregate-features", "odd", seed)["f1"]) for seed in (1, 2)]
    assert f"Two other seeds of ours have F1 {seeds[0]} and {seeds[1]} there" in page


def test_the_order_in_which_cells_are_filled() -> None:
    told = words_of("docs/detection.md").split("`--next` begins with ", 1)[1]
    first, last = told.split(", then takes the last three rows of the table,", 1)
    named = re.findall(r"`([\w-]+)`", first)
    order = list(FILLED)
    assert named == order[: len(named)] and last.startswith(" then the rest.")
    rows_of_one = (
        "cifar10-uniform-40-layernorm",
        "digits-uniform-40",
        "cifar10n-aggregate-features",
    )
    assert tuple(order[len(named) : len(named) + 3]) == rows_of_one
    assert [row[0].strip("`") for row in rows("docs/detection.md", "| case | labels |")][
        -3:
    ] == list(rows_of_one)


def test_the_table_of_all_methods_on_digits() -> None:
    for name, f1, best, precision, cost, to_model, accuracy in rows(
        "docs/detection.md", "| + model | test accuracy |"
    ):
        method = name.strip("`")
        found = [stored(f"detection/digits-uniform-40--{method}--seed{s}.json") for s in range(3)]
        figures = [each["figures"] for each in found]
        if f1 != "–":
            ours = [each["f1"] for each in figures]
            assert f1 == f"{short(mean(ours))} ± {short(stdev(ours))}"
        assert best == short(mean(each["best_f1"] for each in figures))
        assert precision == short(mean(each["average_precision"] for each in figures))
        for cell, key in ((cost, "factor"), (to_model, "to_model")):
            assert cell == f"{mean(each['cost'][key] for each in found):.2f}"
        if accuracy != "–":
            assert accuracy == f"{mean(each['test_accuracy'] for each in figures):.1f} %"


def test_how_much_a_suggestion_promises() -> None:
    def said(case: str) -> dict[str, float]:
        found = stored(f"detection/{case}--odd--seed0.json")["details"]["suggestions"]
        return dict(found)

    for name, number, *shares in rows("docs/how_it_works.md", "| suggestions | right |"):
        found = said(CASES[name.replace(" that learnt little", " ¹")])
        assert number == f"{found['count']:,}"
        assert shares == [f"{100 * found[key]:.1f} %" for key in ("right", "said_right")]
    *whole, _ = CASES.values()  # without the ConvNeXt
    surplus = sorted(100 * (said(each)["said_right"] - said(each)["right"]) for each in whole)
    told = f"{surplus[1]:.0f} to {surplus[-1]:.0f} points too much in {len(whole) - 1} of the"
    assert f"{told} [{len(whole)} cases]" in words_of("docs/how_it_works.md")
    assert surplus[0] < 0 < surplus[1]


def test_why_the_default_differs_from_the_paper_s_rule() -> None:
    page = words_of("docs/how_it_works.md")
    names = sorted((ROOT / "oddly/results/detection").glob("cifar*--odd_paper--seed0.json"))
    both = [file.name.split("--")[0] for file in names if "features" not in file.name]
    rule, ours = ([detected(case, m)["f1"] for case in both] for m in ("odd_paper", "odd"))
    assert len(both) == 6 and "six kinds of labels on CIFAR" in page
    assert all(a > b for a, b in zip(ours, rule, strict=True)) and "ahead in each" in page
    (low, high), (least, most) = (
        [f"{end(each):.2f}".lstrip("0") for end in (min, max)] for each in (rule, ours)
    )
    assert f"reaches F1 {low} to {high} and the default {least} to {most}," in page
    table = {row[0]: row[1:] for row in rows("docs/reproduce.md", "| ours | f1 | precision |")}
    recalls = [float(table[f"E = {e}, p = 10"][2].split()[0]) for e in (50, 75, 100)]
    first, second, third = (f"{100 * recall:.0f} %" for recall in recalls)
    said = f"finds {first} of the wrong labels at E = 50, {second} at E = 75 and {third} at E = 100"
    assert said in page
    ten = stored("reproduce/cifar10-uniform40-odd-wrn-28-10-seed0-f8a844ad.json")["summary"]
    assert f"the cut is too low: precision {ten['precision']:.2f}.".replace("0.", ".") in page
