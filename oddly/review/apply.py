"""`oddly apply`: write the decisions as a table of labels, which `oddly train --labels` reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oddly.errors import InputError, count
from oddly.records import Run, read_table, read_twins, replacing, write_csv
from oddly.review.decisions import FILE_NAME, Decision, Decisions
from oddly.text_table import ID_COLUMNS, LABEL_COLUMNS, PERSON, read_text_columns, spell

SUFFIXES = (".csv", ".parquet")
COLUMNS = ("id", "label", "remove", "decided_by")
TABLE_NAME = "labels.csv"


@dataclass(frozen=True)
class Outcome:
    """What was decided, for each example except skipped ones."""

    labels: dict[str, str]
    """By id; kept labels too."""
    removed: list[str]
    counts: Counter[str]
    """Number of decisions by action."""


def read_outcome(run: Run, decisions: Path | None = None) -> Outcome:
    """The current decisions about examples of this run."""
    path = decisions or run.path / FILE_NAME
    if not path.exists():
        raise InputError(f"{path}: no decisions yet; start with: oddly review {run.path}")
    store = Decisions(path)
    try:
        standing = _of_run(run, store.standing())
    finally:
        store.close()
    counts = Counter(decision.action for decision in standing)
    if not counts.total() - counts["skip"]:
        raise InputError(f"{path}: no decisions yet; continue with: oddly review {run.path}")
    labels = {each.id: each.label for each in standing if each.label is not None}
    return Outcome(labels, [each.id for each in standing if each.action == "remove"], counts)


def list_kept(run: Run, outcome: Outcome) -> dict[str, str]:
    """The label of every example that is not removed, by its id."""
    table = read_table(run.path / "verdicts.parquet", ["id", "given_name"])
    rows = zip(table["id"].to_pylist(), table["given_name"].to_pylist(), strict=True)
    removed = set(outcome.removed)
    return {id: outcome.labels.get(id, given) for id, given in rows if id not in removed}


def about_undecided(run: Run, outcome: Outcome) -> str | None:
    """A note on how many suspects are undecided; None if none is."""
    table = read_table(run.path / "verdicts.parquet", ["id", "keep"])
    suspects = table.filter(pc.invert(table["keep"]))["id"].to_pylist()
    decided = outcome.labels.keys() | set(outcome.removed)
    if not (left := sum(id not in decided for id in suspects)):
        return None
    what = "is undecided: its label stays as it is"
    if left > 1:
        what = "are undecided: their labels stay as they are"
    return f"{left:,} of {count(len(suspects), 'suspect')} {what}"


def about_copies(run: Run, outcome: Outcome) -> str | None:
    """A note on how many pictures still have two labels after the decisions; None if none has."""
    labels: dict[int, set[str]] = defaultdict(set)
    if twins := read_twins(run.path):
        for id, label in list_kept(run, outcome).items():
            if id in twins:
                labels[twins[id].group].add(label)
    if not (torn := sum(len(borne) > 1 for borne in labels.values())):
        return None
    have = "has" if torn == 1 else "have"
    return f"{count(torn, 'picture')} still {have} two labels; decide for all copies"


def write_labels(run: Run, outcome: Outcome, out: Path | None = None) -> Path:
    """The table that `oddly train DATA --labels` and `oddly clean` read.

    Decisions are marked as made by a person, so the next run does not change these labels. Rows of
    the table that this run was trained with are carried over.
    """
    path = out or run.path / TABLE_NAME
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: the table must be a {' or '.join(SUFFIXES)} file")
    rows = dict(_earlier_rows(run))
    rows |= {id: (label, "no", PERSON) for id, label in outcome.labels.items()}
    rows |= {id: ("", "yes", PERSON) for id in outcome.removed}
    table = [(id, *rows[id]) for id in sorted(rows)]
    if path.suffix.lower() == ".parquet":
        columns = zip(COLUMNS, zip(*table, strict=True), strict=True)
        with replacing(path) as file:
            pq.write_table(pa.table({name: list(values) for name, values in columns}), file)
    else:
        write_csv(path, COLUMNS, table)
    return path


def _earlier_rows(run: Run) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The rows of the table that this run was trained with, read as `--labels` reads them."""
    if not (name := run.config.get("labels")):
        return
    path, optional = run.find_path(name), ("remove", "decided_by")
    wanted = {"id": ID_COLUMNS, "label": LABEL_COLUMNS, **{each: (each,) for each in optional}}
    try:
        columns = read_text_columns(path, wanted, optional)
    except InputError as error:
        hint = "this run used these labels, and the new table must include them"
        raise InputError(f"{error}; {hint}") from None
    known = set(read_table(run.path / "verdicts.parquet", ["id"])["id"].to_pylist())
    nothing = [""] * len(columns["id"])
    remove, who = (columns.get(each, nothing) for each in optional)
    ids = spell(columns["id"], known)
    for id, label, *rest in zip(ids, columns["label"], remove, who, strict=True):
        gone, person = (value.strip() for value in rest)
        yield id, (label, gone or "no", person)


def _of_run(run: Run, decisions: list[Decision]) -> list[Decision]:
    """Drop decisions about examples that this run does not have (a new run on other data)."""
    known = read_table(run.path / "verdicts.parquet", ["id"])["id"]
    ids = pa.array([decision.id for decision in decisions], pa.string())
    present = pc.is_in(ids, value_set=known.combine_chunks()).to_pylist()
    return [each for each, there in zip(decisions, present, strict=True) if there]
