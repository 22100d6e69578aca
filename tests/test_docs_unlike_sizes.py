"""What docs/constants.md says of classes of unlike size is what is stored."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from oddly.core.sentinels.confusion import ALIKE, CAUTION, SIZES
from tests.pages import ROOT, rows, short, stored

Runs = list[dict[str, Any]]
RUNS: Runs = stored("unlike_sizes.json")["rows"]
NOISY = [run for run in RUNS if run["labels"] != "clean"]
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("## Classes of unlike size", 1)[1].split("\n## ", 1)[0].split())


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def both(runs: Runs, key: str, show: Callable[[float], str]) -> str:
    return " → ".join(show(mean(run[way][key] for run in runs)) for way in ("without", "with"))


def test_the_table_is_what_is_stored() -> None:
    table = rows("docs/constants.md", "| clean, others | classes kept whole |")
    assert [row[0] for row in table] == list(dict.fromkeys(run["images"] for run in RUNS))
    for name, f1, lost, lost_clean, others, whole in table:
        runs = [run for run in RUNS if run["images"] == name]
        clean, noisy = ([r for r in runs if (r in NOISY) == is_noisy] for is_noisy in (False, True))
        assert f1 == both(noisy, "f1", short)
        assert lost == both(noisy, "lost_rare", percent)
        assert lost_clean == both(clean, "lost_rare", percent)
        assert others == both(clean, "lost_others", percent)
        kept = [sum(run[way]["kept_whole"] for run in runs) for way in ("without", "with")]
        assert whole == f"{kept[0]} → {kept[1]}"


def test_gains_and_losses() -> None:
    gains = [run["with"]["f1"] - run["without"]["f1"] for run in NOISY]
    up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    told = f"F1 rises in {up} of the {len(NOISY)} noisy trainings and falls in {down}"
    assert f"{told}, by {short(max(gains))} and {short(-min(gains))} at most" in SECTION


def test_heads_with_a_hidden_layer() -> None:
    tails = {(r["images"], r["labels"]): r["with"] for r in stored("one_way.json")["rows"]}
    for images in ("CIFAR-10", "CIFAR-100"):
        found = [tails[images, f"uniform 20 %, long tail {n} to 1"]["f1"] for n in (10, 50, 200)]
        assert "{}, {} and {}".format(*map(short, found)) + f" on {images}" in SECTION


def test_the_constants() -> None:
    assert (SIZES, ALIKE, CAUTION) == (0.2, 3, 10)
    assert "a fifth of the logarithm" in SECTION and "ten examples are added" in SECTION
    assert "no more than three times the smallest; from nine times on" in SECTION
