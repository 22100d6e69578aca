"""What docs/constants.md says of how many labels are planted, against the stored trainings."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from typing import Any

from oddly.core.sentinels.planting import FEWEST, how_many
from tests.pages import ROOT, short, stored, words_of

STORED = stored("planting.json")
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
DEFAULT = words_of("docs/default.md")
SECTION = PAGE.split("## How many are planted\n")[1].split("\n##")[0]
HARM, FINDING = SECTION.split("*What fewer would find.*")

Row = dict[str, Any]


def table(text: str) -> list[list[str]]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "]
    return lines[1:]


def apart(rows: list[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by these columns, in the file's order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def harm(training: list[Row]) -> Iterable[list[str]]:
    """The rows of one training, plain training first."""
    plain = {row["seed"]: row["test_accuracy"] for row in training if not row["planted"]}
    for (planted,), rows in apart(training, "planted").items():
        assert len(rows) == len(plain)  # every seed
        row, values = rows[0], [row["test_accuracy"] for row in rows]
        losses = [row["test_accuracy"] - plain[row["seed"]] for row in rows]
        yield [
            f"{row['data']}, {row['network']}, {row['epochs']} epochs",
            str(len(rows)),
            f"{planted} ({100 * planted / row['examples']:.1f} %)" if planted else "none",
            f"{mean(values):.1f} % ({min(values):.1f} to {max(values):.1f})",
            f"{signed(mean(losses))} ({signed(min(losses))} to {signed(max(losses))})"
            if planted
            else "–",
        ]


def test_the_harm_is_what_is_stored() -> None:
    trainings = apart(STORED["harm"], "data", "network", "epochs").values()
    assert table(HARM) == [row for training in trainings for row in harm(training)]
    harmed = table(HARM)[3]
    assert harmed[2].startswith(f"{FEWEST} ") and harmed[0].startswith("4,000 ")
    assert f"{harmed[4].split()[0][1:]} points of 53 with {FEWEST} of 4,000" in DEFAULT
    most = {rows[0]["examples"]: max(row["planted"] for row in rows) for rows in trainings}
    assert all(planted == how_many(examples) for examples, planted in most.items())
    assert f"at least {FEWEST}" in SECTION


def pairs(fewer: list[Row], more: list[Row]) -> list[str]:
    """The cells of a case, each with both numbers of planted labels."""

    def both(name: str, form: str, of: Any = mean) -> str:
        if fewer[0][name] is None:
            return "–"
        values = (of(row[name] for row in rows) for rows in (fewer, more))
        return ", ".join(short(v) if form == "f1" else form.format(v) for v in values)

    lost = (100 * mean(row["right_labels_lost"] for row in rows) for rows in (fewer, more))
    return [
        ", ".join(str(fewer[0][name]) for name in ("data", "labels", "network")),
        str(len(fewer)),
        f"{fewer[0]['planted']}, {more[0]['planted']}",
        both("f1", "f1"),
        both("f1", "f1", min),
        ", ".join(f"{one:.1f} %" for one in lost),
        both("test_accuracy", "{:.1f} %"),
    ]


def test_what_fewer_would_find_is_what_is_stored() -> None:
    wanted = []
    for rows in apart(STORED["finding"], "data", "labels", "network").values():
        by_number = list(apart(rows, "planted").values())
        fewer, more = by_number[0], by_number[-1]
        assert [row["seed"] for row in fewer] == [row["seed"] for row in more]
        assert more[0]["planted"] == how_many(more[0]["examples"])
        wanted.append(pairs(fewer, more))
    assert table(FINDING) == wanted
    lowest = [cells[4].split(", ") for cells in wanted if cells[4] != "–"]
    sure = lowest[: -sum("ResNet-8" in cells[0] and cells[4] != "–" for cells in wanted)]
    falls = sum(fewer < more for fewer, more in sure)
    text = " ".join(FINDING.split())
    assert f"of several seeds falls in {falls} of {len(sure)} cases" in text
    (demo,) = (cells for cells in wanted if cells[0].startswith("digits, uniform 40 %"))
    fewer_right, more_right = (float(one.rstrip(" %")) for one in demo[6].split(", "))
    digits = [
        r for r in STORED["finding"] if (r["data"], r["labels"]) == ("digits", "uniform 40 %")
    ]
    halves = [[r["test_accuracy"] for r in half] for half in apart(digits, "planted").values()]
    losers = sum(fewer < more for fewer, more in zip(*halves, strict=True))
    some = f"({losers} of {len(halves[0])} seeds lose some)"
    assert f"lose {more_right - fewer_right:.1f} points of accuracy {some}" in text


def test_the_interval_holds_where_the_verdict_is_not_doubted() -> None:
    """About as often with either number; doubted are the trainings of ResNet-8 alone."""
    held: dict[str, list[bool]] = {"fewer": [], "more": []}
    widths: dict[str, list[float]] = {"fewer": [], "more": []}
    for rows in apart(STORED["finding"], "data", "labels", "network").values():
        numbers = [row["planted"] for row in rows]
        for row in rows:
            assert row["doubted"] == row["network"].startswith("ResNet-8")
            which = {max(numbers): "more", min(numbers): "fewer"}.get(row["planted"])
            if which and not row["doubted"]:
                low, high = (row["noise_rate"][end] for end in ("low", "high"))
                held[which].append(low <= row["wrong"] <= high)
                widths[which].append(100 * (high - low))
    text = " ".join(FINDING.split())
    assert sum(held["fewer"]) == sum(held["more"])
    assert f"held the truth in {sum(held['more'])} of {len(held['more'])} trainings" in text
    wide = (
        f"{mean(widths['fewer']):.1f} points wide on average instead of {mean(widths['more']):.1f}"
    )
    assert wide in text


def test_what_accuracy_gains_with_fewer() -> None:
    """Heads on few images: means over all kinds of labels."""
    gains: dict[int, list[float]] = {100: [], 150: []}
    heads = [row for row in STORED["finding"] if row["network"] == "head on features"]
    few = [row for row in heads if row["examples"] in (2_000, 4_000)]
    for rows in apart(few, "data", "labels").values():
        accuracy = {
            planted: mean(row["test_accuracy"] for row in these)
            for (planted,), these in apart(rows, "planted").items()
        }
        for planted, found in gains.items():
            found.append(accuracy[planted] - accuracy[max(accuracy)])
    by_hundred, by_more = (f"{mean(found):.1f}"[1:] for found in gains.values())
    told = f"100 gains {by_hundred} points of accuracy on average, and 150 gains {by_more}."
    assert told in " ".join(SECTION.split())
