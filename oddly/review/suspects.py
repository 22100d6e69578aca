"""The suspects of a run, worst first; stored by column, to handle a million examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oddly.errors import InputError
from oddly.records import DECIDED, SAME_PICTURE, Run, Twin, read_table, read_twins

COLUMNS = (
    *("index", "id", "given_name", "score", "counterfactual_percentile", "threshold", "keep"),
    *("suggested_name", "suggested_confidence"),
)
WORST = (("score", "descending"), ("index", "ascending"))
STRONG, CLEAR = 60.0, 20.0  # percentiles of the counterfactual


@dataclass(frozen=True)
class Suspect:
    """One example that the run would remove."""

    rank: int
    """0 = the most suspicious."""
    index: int
    """Its place in the training set."""
    id: str
    given: str
    suggested: str | None
    confidence: float | None
    """0..1, of the suggested label."""
    words: str
    """Its score, in words."""


class Suspects:
    """Suspects by rank."""

    def __init__(
        self,
        table: pa.Table,
        class_names: list[str],
        examples: int,
        twins: Mapping[str, Twin] | None = None,
        by_rule: bool = False,
    ) -> None:
        self.class_names = class_names
        self._twins = twins or {}
        self._by_rule = by_rule
        self.examples = examples
        self.ids: list[str] = table["id"].to_pylist()
        self.rank_of = {id: rank for rank, id in enumerate(self.ids)}
        self._columns = {
            name: table[name].combine_chunks() for name in table.column_names if name != "id"
        }

    @classmethod
    def read(cls, run: Run, top: int | None = None) -> Suspects:
        """Those that the run removed, or the `top` most suspicious, removed or not.

        Removed copies of a picture are directly followed by the copies that the run kept, so that
        you can decide for all of them.
        """
        if not run.is_done or not run.has_verdicts:
            hint = "continue it with the same command and --resume"
            raise InputError(f"{run.path}: this run is not finished; {hint}")
        table = read_table(run.path / "verdicts.parquet", [*COLUMNS, "reason"])
        if missing := set(COLUMNS) - set(table.column_names):
            raise InputError(f"{run.path}: verdicts.parquet has no column {min(missing)}")
        if not _is_judged(table):
            method = run.config.get("method")
            reason = f"method {method} gives no verdicts" if method else "it has no verdicts"
            raise InputError(f"{run.path}: {reason}; review a run of method odd")
        class_names = list_classes(table)
        twins = read_twins(run.path) if "reason" in table.column_names else {}
        chosen = _choose(_not_decided(table), twins, top)
        return cls(chosen, class_names, len(table), twins, bool(run.by_rule))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rank: int) -> Suspect:
        twin = self._twins.get(self.ids[rank])
        value = {name: column[rank].as_py() for name, column in self._columns.items()}
        return Suspect(
            rank=rank,
            index=value["index"],
            id=self.ids[rank],
            given=value["given_name"] or "",
            suggested=value["suggested_name"],
            confidence=value["suggested_confidence"],
            words=self._describe(value, twin),
        )

    def _describe(self, value: Mapping[str, Any], twin: Twin | None) -> str:
        if twin and value.get("reason") == SAME_PICTURE:  # whatever its score
            return twin.words
        percentile = value["counterfactual_percentile"]
        words = describe_score(value["score"], value["threshold"], percentile, self._by_rule)
        return f"{words}. {twin.words}" if twin else words


def _is_judged(table: pa.Table) -> bool:
    """Whether the run has verdicts: by a threshold, or by a rule without one."""
    removes = pc.any(pc.invert(table["keep"])).as_py()
    return table["threshold"].null_count < len(table) or bool(removes)


def describe_score(
    score: float | None,
    threshold: float | None,
    percentile: float | None,
    by_rule: bool = False,
) -> str:
    """How suspicious a label is, compared with random labels.

    `by_rule`: the run has systematically wrong labels; those have no percentile.
    """
    if score is None:
        return "Never seen in training"
    if threshold is None:
        return f"Score {score:.2f}"
    if score < threshold:
        return "Below the threshold: the run kept it"
    if percentile is None and by_rule:
        return "Systematic confusion: others with this label look like the same other class"
    if percentile is None:
        return f"Score {score:.2f}, above the threshold of {threshold:.2f}"
    strength = "Strong" if percentile >= STRONG else "Clear" if percentile >= CLEAR else "Slight"
    worse = f"worse than {percentile:.0f}\N{NO-BREAK SPACE}% of random labels"
    if percentile > 99.5:
        worse = "worse than nearly every random label"
    elif percentile < 1:
        worse = "better than nearly every random label, but worse than right ones"
    return f"{strength} suspicion: the label fits {worse}"


def _choose(rows: pa.Table, twins: Mapping[str, Twin], top: int | None) -> pa.Table:
    """The suspects, or the `top` first ones, and kept copies of their pictures."""
    rows = rows.append_column("group", _group_twins(rows, twins))
    rows = rows.append_column("kept", rows["keep"].cast(pa.int8()))
    # Ranked as in `oddly clean`: removed examples first, then high scores that were kept.
    order = [("kept", "ascending"), ("group", "ascending"), *WORST]
    if top is None:
        chosen = rows.filter(pc.invert(rows["keep"]))
    else:
        chosen = rows.take(pc.select_k_unstable(rows, min(top, len(rows)), order))
    if not twins:
        return chosen.sort_by(order)
    copies = pc.is_in(rows["group"], value_set=chosen["group"].drop_null())
    chosen = rows.filter(pc.or_(copies, pc.is_in(rows["index"], value_set=chosen["index"])))
    alone = pc.and_(chosen["keep"], pc.is_null(chosen["group"])).cast(pa.int8())
    order = [(name, "ascending") for name in ("alone", "group", "kept")]
    return chosen.append_column("alone", alone).sort_by([*order, *WORST])


def _group_twins(table: pa.Table, twins: Mapping[str, Twin]) -> pa.Array:
    """The picture of each copy, to sort them first and side by side; null for others."""
    if not twins:
        return pa.nulls(len(table), pa.int64())
    return pa.array(
        [twins[id].group if id in twins else None for id in table["id"].to_pylist()], pa.int64()
    )


def _not_decided(table: pa.Table) -> pa.Table:
    """Drop labels that a person decided before this run, which need not be reviewed again."""
    if "reason" not in table.column_names:
        return table
    decided = pc.fill_null(pc.equal(table["reason"], DECIDED), False)
    return table.filter(pc.invert(decided))


def list_classes(table: Any) -> list[str]:
    """All classes in order, from the columns' dictionaries, which include empty classes."""
    found: dict[str, None] = {}
    for name in ("given_name", "suggested_name"):
        column = table[name]
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        for chunk in column.chunks:
            found |= dict.fromkeys(chunk.dictionary.to_pylist())
    return [name for name in found if name is not None]
