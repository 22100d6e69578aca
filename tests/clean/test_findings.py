from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oddly.clean.findings import summarise
from oddly.cli.findings import tell_findings
from oddly.records import SAME_PICTURE, Run
from tests.clean.runs import write_run

NAMES = ("common", "b", "船", "tiny", "pair")


def test_a_small_class_that_is_lost_is_named(tmp_path: Path) -> None:
    """40 of 200 common ones, 17 of 18 ships, 2 of 3 and 2 of 2: ships come first, with a word."""
    removed = [0] * 40 + [2] * 17 + [3] * 2 + [4] * 2
    kept = [0] * 160 + [2] + [3] + [1] * 5
    given = [*removed, *kept]
    ids = [f"{i}.png" for i in range(len(given))]
    run = write_run(tmp_path / "run", "x", ids, len(removed), given, NAMES)
    found = summarise(run)
    assert found.classes == [
        *[("船", 17, 18), ("common", 40, 200), ("pair", 2, 2), ("tiny", 2, 3)]  # few come last
    ]
    assert found.mostly_suspect == [("船", 17, 18)]  # the others are too small to be judged at all
    lines = tell_findings(found)
    assert "  17 of 18 船" in lines
    assert (
        "more than half are suspects in 船 (17 of 18): verdicts on rare or hard classes are"
        " unreliable, so look before you remove"
    ) in lines


def test_the_interval_says_what_its_lower_end_means(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "x", ["1.png", "2.png"], 1)
    noise = {"rate": 0.212, "low": 0.001, "high": 0.278}
    lines = tell_findings(replace(summarise(run), estimated_noise=noise))
    assert (
        "estimated share of wrong labels: 21.2 %, between 0.1 and 27.8 % (the lower bound counts"
        " only labels that look entirely random)"
    ) in lines
    lines = tell_findings(
        replace(summarise(run), estimated_noise=noise, doubt="it has hardly learnt")
    )
    assert any(line.endswith("entirely random); also unreliable") for line in lines)


def test_labels_that_went_wrong_by_a_rule_are_told_of(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "x", ["1.png", "2.png"], 1)
    assert summarise(run).by_rule is None
    assert tell_findings(replace(summarise(run), by_rule="it was a rule"))[1] == "it was a rule"


def test_no_word_where_no_class_is_lost(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "x", [f"{i}.png" for i in range(10)], 5)
    found = summarise(run)
    assert found.classes == [("a", 5, 10)] and found.mostly_suspect == []
    assert not any("more than half" in line for line in tell_findings(found))


def test_names_that_a_spreadsheet_runs_are_told_of(tmp_path: Path) -> None:
    ids = ["a/1.png", "=1+1/2.png", "b/-3.png"]
    found = summarise(write_run(tmp_path / "run", "x", ids, 1, [0, 1, 1], ("-1", "@b")))
    told = "2 names start with = + - or @, for example =1+1/2.png: a spreadsheet may run it"
    assert found.spreadsheet is not None and found.spreadsheet.startswith(told)
    assert found.spreadsheet in tell_findings(found)
    assert summarise(write_run(tmp_path / "plain", "x", ["1", "-2"], 1)).spreadsheet is None


@pytest.mark.parametrize("content", [b"nothing like it\n1\n", b"\xff\xfe", b"\xff\xfe\x00", b"\0"])
def test_a_damaged_list_is_no_reason_to_tell_nothing(tmp_path: Path, content: bytes) -> None:
    run = write_run(tmp_path / "run", "x", ["1", "2"], 1)
    for name in ("duplicates.csv", "unreadable.csv"):
        (run.path / name).write_bytes(content)
    assert (summarise(run).suspects, summarise(run).conflicting) == (1, 0)


def write_copies(run: Run, copies: int) -> None:
    """The first so many are one picture, of two labels, and removed for that."""
    said = run.verdicts
    names = said.given_name[:copies].tolist()
    rows = [f"1,{i}.png,{name},true,same pixels" for i, name in enumerate(names)]
    (run.path / "duplicates.csv").write_text(
        "\n".join(["group,id,given_name,conflicting,same", *rows, ""])
    )
    reasons = [SAME_PICTURE if i < copies else None for i in range(len(said))]
    said["reason"] = reasons


def test_one_picture_under_two_labels_says_nothing_about_classes(tmp_path: Path) -> None:
    ids = [f"{i}.png" for i in range(120)]
    run = write_run(tmp_path / "run", "x", ids, 120, [0, 1] * 60)
    write_copies(run, 120)
    found = summarise(run)
    assert (found.duplicates, found.copies, found.contradicted) == (1, 120, 120)
    assert found.mostly_suspect == []
    lines = tell_findings(found)
    assert lines[0] == (
        "120 of 120 images are suspects (100.0 %), all of them copies with different labels"
    )
    assert (
        "1 picture occurs 120 times, with different labels: all 120 copies are suspects"
        " (duplicates.csv)"
    ) in lines
    assert not any("more than half" in line for line in lines)


def test_a_class_is_judged_by_what_is_no_copy(tmp_path: Path) -> None:
    """8 copies that lose beside 7 of 12 others: those 12 tell."""
    ids = [f"{i}.png" for i in range(30)]
    run = write_run(tmp_path / "run", "x", ids, 15, [0, 1] * 4 + [0] * 12 + [1] * 10)
    write_copies(run, 8)
    found = summarise(run)
    assert found.mostly_suspect == [("a", 7, 12)]
    assert tell_findings(found)[0] == "15 of 30 images look mislabelled (50.0 %)"
    told = tell_findings(replace(found, suspects=1))
    assert told[0] == "1 of 30 images looks mislabelled (3.3 %)"
    told = tell_findings(replace(found, suspects=1, contradicted=1))
    assert told[0] == "1 of 30 images is a suspect (3.3 %), a copy with another label"
    told = tell_findings(replace(found, duplicates=3, contradicted=5))
    assert any(
        line.startswith("3 pictures occur more than once, 1 of them with different labels: 5")
        for line in told
    )
