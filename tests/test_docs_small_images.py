"""docs/clean.md on small images, against the stored runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from oddly.clean import trial
from oddly.clean.settings import ENOUGH, SMALL, TINY
from oddly.engine.embed import COMMON
from oddly.engine.outcome import MEASURED_FROM
from tests.pages import ROOT, rows, short, stored

ROWS: list[dict[str, Any]] = stored("small_trial.json")["rows"]
PAGE = (ROOT / "docs/clean.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("### Small images\n")[1].split("\n###")[0].split())
NAMES = {
    "digits": "digits, enlarged from 8 pixels to 32",
    "mnist": "MNIST",
    "fashion": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
}
TAKEN = {"frozen": "frozen", "scratch": "from scratch"}


def span(values: Iterable[float], digits: int) -> str:
    known = sorted(values)
    ends = [f"{end:.{digits}f}" for end in (known[0], known[-1])]
    told = [end.lstrip("0") if digits == 3 else end for end in ends]
    return told[0] if told[0] == told[1] else " to ".join(told)


def test_the_table_is_what_is_stored() -> None:
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    for row in ROWS:
        groups[row["images"], row["number"], row["labels"].removeprefix("uniform")].append(row)
    table = rows("docs/clean.md", "| images, wrong labels | taken |")
    assert len(table) == len(groups) and len(ROWS) == 20
    for line, ((images, number, share), group) in zip(table, groups.items(), strict=True):
        taken = " or ".join(TAKEN[name] for name in sorted({row["chosen"] for row in group}))
        figures = [
            span((row[network][figure] for row in group), digits)
            for figure, digits in (("f1", 3), ("contrast", 1))
            for network in ("frozen", "scratch")
        ]
        assert line == [f"{number:,} of {NAMES[images]}, {share} %", taken, *figures]


def test_what_the_network_from_scratch_gains() -> None:
    drawn = [row for row in ROWS if row["images"] in ("digits", "mnist")]
    gains = [row["scratch"]["f1"] - row["frozen"]["f1"] for row in drawn]
    assert len(drawn) == 10 and sum(gain > 0 for gain in gains) == 8
    assert f"in eight, by up to {max(gains):.2f}, and loses .03".replace("0.", ".") in SECTION
    assert all(-0.036 < gain < -0.025 for gain in gains if gain < 0)
    assert {row["chosen"] for row in drawn} == {"scratch"}
    assert {row["chosen"] for row in ROWS if row not in drawn} == {"frozen"}


def test_the_numbers_are_those_of_the_code() -> None:
    few = f"from {MEASURED_FROM} to {trial.MANY - 1:,} images of {TINY} to {SMALL - 1} pixels"
    assert few in SECTION and f"are tried on {trial.TRIED} of them" in SECTION
    assert ENOUGH == 0.75 and "at least three quarters of the other's" in SECTION
    small = f"Where {MEASURED_FROM} to {trial.MANY - 1:,} images have {TINY} to {SMALL - 1} pixels"
    assert small in " ".join(PAGE.split())


COMMON_ROWS: list[dict[str, Any]] = stored("common_mean.json")["rows"]
ALIKE = " ".join(PAGE.split("### Images much alike\n")[1].split("\n###")[0].split())


def arrow(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    before, after = row["with"], row["without"]
    if "f1" not in before:
        return f"{100 * before['removed']:.1f} → {100 * after['removed']:.1f} %"
    return f"{short(before['f1'])} → {short(after['f1'])}"


def test_the_table_of_images_much_alike() -> None:
    by_place = {(row["images"], row["labels"]): row for row in COMMON_ROWS}
    names = {f"1,700 of {NAMES[each]}": each for each in ("mnist", "fashion", "cifar10")}
    names["1,700 digits, enlarged to 32 pixels"] = "digits"
    table = rows("docs/clean.md", "| images | of it the mean |")
    kinds = ("uniform10", "uniform20", "uniform40", "alike30", "clean")
    for name, share, *cells in table:
        images = names.get(name, name)
        assert share == f"{by_place[images, 'clean']['share']:.2f}"
        assert cells == [arrow(by_place.get((images, kind))) for kind in kinds]
    assert len(table) == len({row["images"] for row in COMMON_ROWS}) == 9


def test_what_taking_the_mean_off_gains() -> None:
    assert (
        f"more than {short(COMMON).rstrip('0')} of their squared length, it is taken off" in ALIKE
    )
    above = [r for r in COMMON_ROWS if r["share"] > COMMON]
    noisy = [row for row in above if row["labels"] != "clean"]
    gains = [row["without"]["f1"] - row["with"]["f1"] for row in noisy]
    ends = f"by {short(min(gains))} to {short(max(gains))}"
    assert f"F1 rises in all {len(gains)} rows with wrong labels, {ends}" in ALIKE
    assert all(r["without"]["removed"] < r["with"]["removed"] for r in above if r not in noisy)
