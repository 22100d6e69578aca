"""What docs/constants.md says of verdicts not to be trusted, against the stored runs."""

from __future__ import annotations

from statistics import mean
from typing import Any

from oddly.core.sentinels.learnt import LEARNT, NOTHING, SOUND, SURE, VAGUE
from tests.pages import ROOT, rows, stored, words_of

STORED = stored("contrast_runs.json")
PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
DEFAULT = words_of("docs/default.md")
SECTION = PAGE.split("## Not to be trusted\n")[1].split("\n##")[0]
TABLE, REST = SECTION.split("*A doubted verdict removes less.*")
LESS, NONE = REST.split("*A network that has learnt nothing removes nothing.*")


def cells(run: dict[str, Any]) -> list[str]:
    """A row of the table, as the page writes it."""
    precision, accuracies = "–", "not run"
    if run["precision"] is not None:
        precision = f"{run['precision']:.2f}".removeprefix("0")
    if run["test_accuracy"] is not None:
        pair = (run["test_accuracy"], run["test_accuracy_plain"])
        accuracies = ", ".join("not run" if one is None else f"{one:.1f} %" for one in pair)
    lost = f"{100 * run['right_labels_lost']:.0f} %"
    return [f"{run['contrast']:.1f}", f"{run['needed']:.1f}", lost, precision, accuracies]


def rows_of(text: str) -> list[list[str]]:
    return [line.strip("| \n").split(" | ") for line in text.splitlines() if line[:2] == "| "]


def test_the_table_is_what_is_stored() -> None:
    """Three groups, each headed by words in italics: doubted, not doubted, held out."""
    rows = rows_of(TABLE)
    groups: dict[str, dict[str, list[str]]] = {}
    for name, *rest in rows[1:]:
        if name.startswith("*"):
            heading = name.strip("*: ")
            groups[heading] = {}
        else:
            groups[heading][name] = rest
    runs = [run for run in STORED["runs"] if run["in_the_table"]]
    for heading, wanted in {
        "doubted": [run for run in runs if run["doubted"] and not run["held_out"]],
        "not doubted": [run for run in runs if not run["doubted"] and not run["held_out"]],
        "held out, doubted": [run for run in runs if run["doubted"] and run["held_out"]],
        "held out, not doubted": [run for run in runs if not run["doubted"] and run["held_out"]],
    }.items():
        assert groups.pop(heading) == {run["training"]: cells(run) for run in wanted}, heading
    assert not groups


def test_the_rule_is_the_one_that_was_measured() -> None:
    assert STORED["rule"] == {"sound": SOUND, "learnt": LEARNT, "vague": VAGUE, "sure": SURE}
    section = " ".join(SECTION.split())
    rule = f"A verdict is trusted from a contrast of {LEARNT:g} + {VAGUE:g} v on"
    assert rule in section and "v is the share of labels that look wrong but not" in section
    assert f"Below {LEARNT:g} (up to {SURE:g} where many labels look wrong" in DEFAULT
    for run in STORED["runs"]:
        below = run["contrast"] < run["needed"] and run["removed"] > 0
        assert run["doubted"] == below, run["training"]
        assert LEARNT <= run["needed"] <= SURE
    assert f"and from {SURE:.1f} on in any case" in section


def test_none_of_the_recordings_is_doubted() -> None:
    recordings = STORED["recordings"]
    assert f"None of the {len(recordings)} recordings" in " ".join(SECTION.split())
    closest = min(recordings, key=lambda one: one["contrast"] / one["needed"])
    assert closest["contrast"] > closest["needed"]
    numbers = f"{closest['contrast']:.1f} where {closest['needed']:.1f} is needed"
    assert numbers in " ".join(SECTION.split())


def test_of_those_held_out_the_right_ones_are_doubted() -> None:
    runs = STORED["runs"]
    bad = [run["doubted"] for run in runs if run["right_labels_lost"] > 0.2]
    good = [run["doubted"] for run in runs if run["right_labels_lost"] < 0.1]
    text = " ".join(SECTION.split())
    for words in (
        f"Of all {len(runs)} runs in the file, {len(bad)} lost more than a fifth",
        f"and {sum(bad)} of these are doubted; {len(good)} lost less than a tenth",
        f"and {sum(good)} of these is (",
    ):
        assert words in text
    for run in runs:
        if run["held_out"]:
            assert run["doubted"] == (run["right_labels_lost"] > 0.2), run["training"]


def test_who_has_learnt_nothing_removes_nothing() -> None:
    runs = stored("nothing_learnt.json")["rows"]
    table = rows("docs/constants.md", "| training | contrast now | removed | test accuracy |")
    assert [row[0] for row in table] == [run["training"] for run in runs]
    for run, (_, learnt, *shares, plain) in zip(runs, table, strict=True):
        pair = (run["before"], run["now"])
        removed = ", ".join(f"{100 * one['removed']:.0f} %" for one in pair)
        accuracy = ", ".join(f"{one['test_accuracy']:.1f} %" for one in pair)
        assert shares == [removed, accuracy] and plain == f"{run['plain']:.1f} %"
        assert learnt == f"{run['contrast']:.1f}"
        assert (run["contrast"] < NOTHING) == (run["now"]["removed"] == 0)
        assert run["now"]["test_accuracy"] > run["before"]["test_accuracy"]
    text = " ".join(SECTION.split())
    assert "do not differ at all have a contrast of 5" in text and NOTHING == 5
    assert "Below a contrast of 5 (`NOTHING`) a verdict removes nothing" in text
    assert "from a contrast of 8.5 on" in " ".join(NONE.split()) and SURE == 8.5


def test_what_doubted_verdicts_remove_now_is_what_is_stored() -> None:
    runs = STORED["removing_less"]["runs"]
    pairs = [(run["by_percentile"], run["less"]) for run in runs]
    wanted = [
        [
            run["training"],
            ", ".join(f"{100 * one['right_labels_lost']:.0f} %" for one in pair),
            ", ".join("–" if one["f1"] is None else f"{one['f1']:.2f}"[1:] for one in pair),
            ", ".join(f"{one['test_accuracy']:.1f} %" for one in pair),
            "not run" if run["plain"] is None else f"{run['plain']:.1f} %",
        ]
        for run, pair in zip(runs, pairs, strict=True)
    ]
    assert rows_of(LESS)[1:] == wanted
    lost = [100 * mean(pair[i]["right_labels_lost"] for pair in pairs) for i in (0, 1)]
    gain = mean(less["test_accuracy"] - before["test_accuracy"] for before, less in pairs)
    text = " ".join(LESS.split())
    assert f"fall from {lost[0]:.0f} to {lost[1]:.0f} % on average" in text
    assert f"rises by {gain:.1f} points on average" in text
    falls = [a["f1"] - b["f1"] for a, b in pairs if a["f1"] is not None]
    assert "F1 rises, or falls by .005 at most" in text and max(falls) < 0.0055
