"""What docs/constants.md says of labels that are wrong by a rule is what is stored."""

from __future__ import annotations

from statistics import mean
from typing import Any

from oddly.core.sentinels.learnt import NOTHING
from oddly.core.sentinels.one_way import CERTAIN, MOSTLY, TIMES, USUAL
from tests.pages import ROOT, rows, short, stored

RUNS: list[dict[str, Any]] = stored("one_way.json")["rows"]
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("## Wrong by a rule", 1)[1].split("\n## ", 1)[0].split())
RULES = ("next", "permuted", "reversed", "asymmetric")
MADE = [run for run in RUNS if run["labels"].split()[0] in RULES]


def test_the_table_is_what_is_stored() -> None:
    table = rows("docs/constants.md", "| classes so confused | doubted without |")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in MADE:
        images = run["images"] + ("" if "digits" in run["images"] else ", head on features")
        groups.setdefault((images, run["labels"]), []).append(run)
    assert [(row[0], row[1]) for row in table] == list(groups)
    for row, runs in zip(table, groups.values(), strict=True):
        wanted = (("without", "f1"), ("with", "f1"), ("with", "precision"))
        assert row[2:5] == [short(mean(run[w][f] for run in runs)) for w, f in wanted]
        assert row[5] == ", ".join(str(run["one_way"]) for run in runs)
        assert row[6] == f"{sum(run['doubted'] for run in runs)} of {len(runs)}"


def test_nothing_changes_where_there_is_no_rule() -> None:
    others = [run for run in RUNS if run not in MADE]
    assert f"In the {len(others)} other rows" in SECTION
    assert all(run["one_way"] == 0 and run["with"] == run["without"] for run in others)


def test_it_never_does_harm_where_there_is() -> None:
    assert all(run["with"]["f1"] >= run["without"]["f1"] for run in MADE)


def test_the_constants() -> None:
    assert (CERTAIN, TIMES, MOSTLY, USUAL, NOTHING) == (2, 1.4, 0.5, 0.3, 5)
    assert "and 1.4 times" in SECTION and "looked for below a contrast of 5, where" in SECTION
    assert "more than half of the images that have" in SECTION
    assert "three tenths by two standard errors" in SECTION
    needed = [int(k * USUAL + 2 * (k * USUAL * (1 - USUAL)) ** 0.5) + 1 for k in (10, 100)]
    assert f"({needed[0]} of 10, {needed[1]} of 100)" in SECTION


def test_how_many_classes_it_names_in_whole_trainings() -> None:
    runs = [stored(f"detection/cifar100-asymmetric-{rate}--odd--seed0.json") for rate in (20, 40)]
    named = [len(run["jobs"][0]["one_way"]) for run in runs]
    assert f"where it names {named[0]} and {named[1]} classes" in SECTION
    rates, wrong = runs[1]["jobs"][0]["estimated_noise"], runs[1]["figures"]["error_rate"]
    said, most, are = (f"{100 * each:.1f} %" for each in (rates["rate"], rates["high"], wrong))
    assert f"little low there, {said}, at most {most}, where {are} are" in SECTION


def test_how_often_the_interval_held() -> None:
    seen = [run for run in RUNS if run["one_way"]]
    above = [run["wrong"] - run["noise_rate"][2] for run in seen]
    assert all(run["noise_rate"][1] <= run["wrong"] for run in seen)
    missed = [round(each, 2) for each in above if each > 0]
    assert missed == [0.01, 0.01]
    told = f"in {len(seen) - len(missed)} of the {len(seen)} trainings above where a rule was seen"
    assert told in SECTION and f"up to {-min(above):.2f} above".replace("0.", ".") in SECTION
