"""What docs/constants.md says of hard images, against the stored trainings."""

from __future__ import annotations

from statistics import mean
from typing import Any

from tests.pages import ROOT, rows, short, stored

Row = dict[str, Any]
STORED = stored("hard_images.json")
HARD: list[Row] = STORED["hard"]
OTHERS: list[Row] = STORED["others"]
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
DEFAULT = (ROOT / "docs/default.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.split("## Hard images\n")[1].split("\n##")[0].split())
FALLS_SHORT = " ".join(DEFAULT.split("## Where it falls short\n")[1].split("\n##")[0].split())


def low(run: Row, rule: str) -> float:
    return float(run["low_before"] if rule == "before" else run["noise_estimate"][1])


def count_held(runs: list[Row]) -> list[int]:
    """Before and now."""
    return [
        sum(low(run, rule) <= run["wrong"] <= run["noise_estimate"][2] for run in runs)
        for rule in ("before", "now")
    ]


def width(runs: list[Row], rule: str) -> str:
    """Of the interval, in points."""
    return f"{100 * mean(run['noise_estimate'][2] - low(run, rule) for run in runs):.1f}"


def cells(images: str) -> list[str]:
    runs = [run for run in HARD if run["images"] == images]
    contrasts = [run["contrast"] for run in runs]
    first = {run["labels"]: run for run in runs if run["seed"] == 0}
    f1s = [short(first["uniform 10 %"]["f1"][cut]) for cut in ("now", "named", "best")]
    least = [f"{100 * low(first['clean'], rule):.1f}" for rule in ("before", "now")]
    before, now = count_held(runs)
    return [
        STORED["images"][images],
        f"{min(contrasts):.1f} to {max(contrasts):.1f}",
        *f1s,
        f"{least[0]} → {least[1]} %",
        f"{before} → {now} of {len(runs)}",
    ]


def test_the_table_of_sets() -> None:
    names = list(dict.fromkeys(run["images"] for run in HARD))
    assert rows("docs/constants.md", "| images | contrast |") == [cells(name) for name in names]
    assert f"{len(HARD)} trainings with clean labels" in SECTION
    assert f"held it in {count_held(HARD)[1]} of {len(HARD)}" in FALLS_SHORT


def test_the_lower_end() -> None:
    high = [sum(low(run, rule) > run["wrong"] for run in HARD) for rule in ("before", "now")]
    assert f"too high in {high[0]} of the {len(HARD)} trainings and is in {high[1]}" in SECTION
    assert all(low(run, "now") <= low(run, "before") for run in HARD + OTHERS + STORED["digits"])
    for runs, told in (
        (OTHERS, "{runs} heads on CIFAR-10, CIFAR-100 and Fashion-MNIST, {held} both times and"),
        (STORED["digits"], "the {runs} trainings on [digits](#into-the-valley), {held} both times"),
    ):
        before, now = count_held(runs)
        assert before == now and told.format(runs=len(runs), held=now) in SECTION
        wide = [width(runs, rule) for rule in ("now", "before")]
        assert f"{now} both times and {wide[0]} points instead of {wide[1]}" in SECTION
    people = [run for run in OTHERS if run["case"].startswith("CIFAR-10N aggregate, ")]
    assert {f"{100 * low(run, 'before'):.0f}" for run in people} == {"1", "2", "3"}
    assert all(low(run, "now") == 0 for run in people) and "instead of 1 to 3 %" in SECTION


def test_the_interval_of_the_heads_that_took_no_part() -> None:
    cases = stored("noise_rate_interval_features.json")["cases"]
    held, trainings = (sum(case[key] for case in cases) for key in ("held", "trainings"))
    assert f"in {held} of {trainings} trainings (129 before)" in SECTION
    wide = sum(case["mean_width"] * case["trainings"] for case in cases) / trainings
    assert f"{100 * wide:.1f} points wide on average" in SECTION


def gains(runs: list[Row], rule: str) -> list[float]:
    """Of F1 where a rule that was given up has another percentile."""
    noisy = [run for run in runs if run["wrong"]]
    return [
        run["f1"][rule] - run["f1"]["now"]
        for run in noisy
        if run["percentile"][rule] != run["percentile"]["now"]
    ]


def test_what_was_given_up() -> None:
    ours, theirs = gains(HARD, "by_contrast"), gains(OTHERS, "by_contrast")
    noisy = sum(run["wrong"] > 0 for run in HARD)
    rises, average = sum(gain > 0 for gain in ours), short(mean(ours))
    assert f"F1 rises in {rises} of the {noisy} trainings below that have wrong labels" in SECTION
    assert f"by {average} on average where the percentile changes, and falls in none" in SECTION
    assert min(ours) >= 0
    lost = [gain for gain in theirs if gain < -0.005]
    told = f"{len(theirs)} change, and {len(lost)} of these lose more than .005, up to"
    assert f"{told} {short(-min(lost))}" in SECTION


def test_the_table_of_look_alikes() -> None:
    named = {f"{run['images']}, {run['labels']}": run for run in HARD if run["seed"] == 0}
    named |= {run["case"]: run for run in OTHERS}
    for name, *told in rows("docs/constants.md", "| labels | contrast | suspicious |"):
        run = named[name]
        shares = [f"{100 * run[key]:.0f} %" for key in ("suspicious", "random")]
        f1s = [short(run["f1"][k]) for k in ("now", "by_contrast", "and_quarter", "best")]
        expected = f"{run['expected_f1']:.2f}"[1:]
        assert told == [f"{run['contrast']:.1f}", *shares, expected, *f1s]


def test_a_percentile_that_is_named() -> None:
    """On the five sets of low contrast."""
    easy = ("letters A to J", "pieces of photographs")
    few = [f"uniform {rate} %" for rate in (5, 10, 20)]
    runs = [run for run in HARD if run["images"] not in easy and run["labels"] in few]
    lifts = [run["f1"]["named"] - run["f1"]["now"] for run in runs]
    told = f"{len(runs)} trainings with uniform noise of 5 to 20 % by {short(mean(lifts))}"
    assert f"{told} on average, {short(max(lifts))} at most" in SECTION
    assert sum(lift < 0 for lift in lifts) == 1 and f"loses {short(-min(lifts))} in one" in SECTION
    (emoji,) = [run["f1"] for run in runs if run["images"] == "emoji" and "10 %" in run["labels"]]
    told = f"{emoji['now']:.2f} where {emoji['best']:.2f} is possible on emoji".replace("0.", ".")
    assert told in FALLS_SHORT
