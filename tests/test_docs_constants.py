"""docs/constants.md lists every constant of the default with the value that the code has."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction
from importlib import import_module
from statistics import mean

import pytest

from evidence.changes import DECAY, EPOCHS, JUDGING, USUAL
from oddly.core.ledger import LossLedger
from oddly.core.rule import PERCENTILES
from oddly.methods.odd import ODD
from tests.pages import ROOT, rows, short, stored

PAGE = (ROOT / "docs/constants.md").read_text(encoding="utf-8")
TABLE = rows("docs/constants.md", "| constant | value | file |")
FILES = (
    *(ROOT / "oddly/core/sentinels").glob("[a-z]*.py"),
    *map((ROOT / "oddly/core").joinpath, ("rule.py", "verdict.py")),
)
NO_CHOICE = {"SALT", "CHUNK", "HUGE"}
"""Seeds, working memory, and what no logits of a working network reach."""


def value_of(name: str, file: str) -> float:
    if name == "LossLedger.decay":
        return float(inspect.signature(LossLedger).parameters["decay"].default)
    if name.startswith("ODD."):
        return float(getattr(ODD(), name.removeprefix("ODD.")))
    if key := re.fullmatch(r'PERCENTILES\["(\w+)"\]', name):
        return PERCENTILES[key[1]]
    module = file.removesuffix(".py").replace("/", ".")
    return float(getattr(import_module(f"oddly.core.{module}"), name))


def plain(cell: str) -> str:
    return cell.replace("`", "")


def test_the_values_are_those_of_the_code() -> None:
    named = [row for row in TABLE if not row[0].startswith("factor")]
    assert len(named) == len(TABLE) - 1
    for name, value, file, *_ in named:
        assert value_of(plain(name), plain(file)) == pytest.approx(float(Fraction(value))), name
        folder = "methods" if name.startswith("`ODD.") else "core"
        assert (ROOT / "oddly" / folder / plain(file)).exists()


def test_no_constant_is_missing() -> None:
    listed = {(plain(row[0]), plain(row[2])) for row in TABLE}
    assert len(FILES) == 11
    for file in FILES:
        source = file.read_text(encoding="utf-8")
        own = re.findall(r"^([A-Z][A-Z_0-9]*(?:, [A-Z][A-Z_0-9]*)*) = [^{(]", source, re.MULTILINE)
        where = file.relative_to(ROOT / "oddly/core").as_posix()
        for name in {one for each in own for one in each.split(", ")} - NO_CHOICE:
            assert (name, where) in listed, f"{where}: {name}"


def test_every_description_is_short_and_its_section_there() -> None:
    for _, _, _, what, section in TABLE:
        assert len(what.split()) <= 10, what
        title = re.fullmatch(r"\[(.*)\]\(#.*\)", section)
        assert title and f"\n## {title[1]}\n" in PAGE


def test_every_section_has_the_same_parts() -> None:
    parts = (
        *("What it does.", "Value and what was tried.", "What moves if you change it."),
        "Where the runs are.",
    )
    titles = list(dict.fromkeys(row[4].split("]")[0].strip("[") for row in TABLE))
    for title in titles:
        section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
        found = [section.find(f"\n**{part}**") for part in parts]
        if title != "How finely it is computed":  # nothing was tried there
            assert -1 not in found and found == sorted(found), title
        names = [plain(row[0]) for row in TABLE if row[4].startswith(f"[{title}]")]
        for name in names:
            told = name.split("[")[0].rpartition(".")[2].split(",")[0].removeprefix("factor in ")
            assert told in section, f"{title}: {name}"


def test_where_e_was_moved() -> None:
    table = iter(rows("docs/constants.md", "| recording | own E: F1 |"))
    for file, kind in (("resnet18_30", "ResNet-18"), ("features_25", "features")):
        for case in stored(f"sentinels_{file}_epochs.json")["cases"]:
            cells = [f"{case['case']}, {kind}"]
            for one in (case["automatic"], *case["forced"]):
                removed = f"{100 * one['removed']:.1f} % removed"
                cells.append(f"{one['epoch']}: {short(one['f1']) if 'f1' in one else removed}")
            assert next(table) == cells
    assert not list(table)


def test_the_weights_of_later_looks() -> None:
    table = rows("docs/constants.md", "| weight of a later look, mean F1 beside none |")
    for (name, *cells), kind in zip(table, ("features", "resnet18"), strict=True):
        cases = [c for c in stored(f"second_look_{kind}.json")["cases"] if "f1" in c["none"]]
        assert f", {len(cases)} trainings" in name
        rules = [*(f"weight_{w}" for w in (0.05, 0.1, 0.2, 0.4)), "predicted_as_given"]
        wanted = []
        for rule in rules:
            gains = [c[rule]["f1"] - c["none"]["f1"] for c in cases if rule in c]
            wanted.append(signed(mean(gains)) if gains else "not run")
        assert cells == wanted
    gains = [
        case["predicted_as_given"]["f1"] - case["weight_0.1"]["f1"]
        for case in stored("second_look_resnet18.json")["cases"]
    ]
    told = f"better on six of the thirteen, all CIFAR-10 with made noise, by up to {max(gains):.3f}"
    section = " ".join(PAGE.split("\n## Later looks\n")[1].split("\n## ")[0].split())
    assert len(gains) == 13 and sum(gain > 0 for gain in gains) == 6
    assert told.replace("0.", ".") in section
    assert f"worse on human labels and CIFAR-100, by up to {short(-min(gains))}." in section


def signed(value: float) -> str:
    told = f"{value:+.3f}".replace("0.", ".").replace("-", "−")
    return told[1:] if told[1:] == ".000" else told


CHANGED = stored("changed_constants.json")["rows"]


def all_of(file: str) -> tuple[str, ...]:
    return tuple(name for name in JUDGING if name.startswith(f"sentinels.{file}."))


MOVES = {
    "How epochs count": ("sentinels.planting.SHARPNESS", DECAY),
    "When E comes": tuple(
        f"sentinels.planting.{name}" for name in ("FALLEN", "EARLIEST", "GOOD_F1", "LATEST")
    ),
    "Which class, which rival": tuple(
        f"sentinels.confusion.{name}"
        for name in ("PULL", "STRENGTH", "CAUTION", "LARGEST", "TURNS")
    ),
    "Classes of unlike size": ("sentinels.confusion.SIZES", "sentinels.confusion.ALIKE"),
    "Which percentile": (USUAL, *all_of("percentile")),
    "Into the valley": ("sentinels.cut.SHALLOW", "sentinels.cut.SMOOTHING"),
    "Wrong by a rule": all_of("one_way"),
    "Called another": all_of("called"),
    "Not to be trusted": (
        *all_of("learnt"),
        *("sentinels.cut.HOPELESS", "verdict.FEWEST_EXAMPLES"),
    ),
}
"""Whose table holds which changes."""


def moved(constants: tuple[str, ...]) -> list[list[str]]:
    """A row for every change: how many verdicts, F1 of noisy labels, what clean ones lose."""
    table = []
    for constant in constants:
        asked = CHANGED if constant in JUDGING else [r for r in CHANGED if "features" in r["case"]]
        for value in {**EPOCHS, **JUDGING}[constant]:
            name = f"{constant} = {value:.3g}"
            pairs = [(row["now"], row["changed"].get(name, row["now"])) for row in asked]
            gains = [then["f1"] - now["f1"] for now, then in pairs if "f1" in now]
            clean = [(now, then) for now, then in pairs if "f1" not in now]
            lost = [100 * (then["removed"] - now["removed"]) for now, then in clean]
            of = sum(name in row["changed"] for row in asked)
            table.append(
                [
                    f"`{constant.rpartition('.')[2]}` {value:.3g}",
                    f"{of} of {len(asked)}",
                    *(signed(each) for each in (mean(gains), max(gains), min(gains))),
                    points(mean(lost)),
                ]
            )
    return table


def points(value: float) -> str:
    told = f"{value:+.1f}".replace("-", "−")
    return "0" if told[1:] == "0.0" else told


@pytest.mark.parametrize("title", list(MOVES))
def test_what_moves(title: str) -> None:
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = section.split("| changed to | verdicts |")[1].splitlines()[2:]
    table = [line.strip("| ").split(" | ") for line in lines[: lines.index("")]]
    wanted = moved(MOVES[title])
    assert table == [row for row in wanted if not row[1].startswith("0 of ")]
    still: dict[str, list[str]] = {}
    for name, value in (row[0].split() for row in wanted if row[1].startswith("0 of ")):
        still.setdefault(name, []).append(value)
    named = [f"{name} {', '.join(values)}" for name, values in still.items()]
    told = f"No verdict changes with {'; '.join(named)}."
    assert not still or told in " ".join(section.split())


def test_the_changes_were_measured_from_the_values_of_the_code() -> None:
    for constant, values in {**EPOCHS, **JUDGING}.items():
        module, _, name = constant.rpartition(".")
        if constant == DECAY:
            module, name = "ledger", "LossLedger.decay"
        key = 'PERCENTILES["sentinels"]' if constant == USUAL else name
        now = value_of(key, f"{module.replace('.', '/')}.py")
        assert now not in values, constant


def test_what_was_changed_where() -> None:
    heads = [row for row in CHANGED if "features" in row["case"]]
    stopped = [row for row in CHANGED if row["case"].endswith(" epochs")]
    noisy = [row for row in CHANGED if row["wrong"]]
    digits = len(CHANGED) - len(heads)
    text = " ".join(PAGE.split())
    told = f"{len(heads)} heads on features of CIFAR-10, and {digits} trainings on digits"
    assert f"{told} from scratch, {len(stopped)} of them stopped early" in text
    assert f"the {len(noisy)} trainings with wrong labels" in text
    assert f"over the other {len(CHANGED) - len(noisy)}, in percentage points" in text


def test_what_the_weights_of_epochs_do_late() -> None:
    late = [row["weights_late"] for row in CHANGED if "weights_late" in row and row["wrong"]]
    gains = [run["with"]["f1"] - run["without"]["f1"] for run in late]
    better = sum(gain > 0 for gain in gains)
    section = " ".join(PAGE.split("\n## How epochs count\n")[1].split("\n## ")[0].split())
    told = f"F1 is higher with the weights on {better} of the {len(gains)} heads with wrong labels"
    assert f"{told}, by {short(mean(gains))} on average and {short(max(gains))} at most" in section
    removed = [
        f"{100 * row['weights_late'][way]['removed']:.1f}"
        for row in CHANGED
        if "weights_late" in row and not row["wrong"]
        for way in ("with", "without")
    ]
    assert f"the clean one loses {removed[0]} % instead of {removed[1]} %" in section
