from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oddly.clean.findings import suspects_of
from oddly.errors import InputError
from oddly.records import SAME_PICTURE, Run, RunWriter, VerdictTable
from oddly.review.suspects import Suspects, describe_score
from tests.review.conftest import write_run

FEW_WORSE = "better than nearly every random label, but worse than right ones"


def test_worst_first_unseen_last_ties_by_place(tmp_path: Path) -> None:
    scores = np.array([1.0, np.nan, 3.0, 2.0, 3.0, 9.0])
    table = VerdictTable(
        ids=[f"{i}.png" for i in range(6)],
        given_labels=np.array([0, 1, 0, 1, 0, 1]),
        losses=scores,
        scores=scores,
        counterfactual_percentiles=scores * 10,
        threshold=0.5,
        keep=np.array([False] * 5 + [True]),
        suggested_labels=np.array([1, 1, -1, 0, 1, 0]),
        suggested_confidences=np.full(6, 0.5),
        class_names=["cat", "dog", "never seen"],
    )
    writer = RunWriter.create(tmp_path / "run", {"method": "odd"}, {})
    writer.write_verdicts(table)
    writer.finish({})
    run = Run(tmp_path / "run")
    suspects = Suspects.read(run)
    assert suspects.ids == ["2.png", "4.png", "3.png", "0.png", "1.png"]
    assert suspects.rank_of["3.png"] == 2 and "5.png" not in suspects.rank_of
    assert suspects.class_names == ["cat", "dog", "never seen"] and suspects.examples == 6
    worst, unseen = suspects[0], suspects[4]
    assert (worst.index, worst.given, worst.suggested) == (2, "cat", None)
    assert unseen.words == "Never seen in training" and unseen.suggested == "dog"
    # A budget takes the most suspicious, kept or not.
    assert Suspects.read(run, top=2).ids == ["2.png", "4.png"]  # as suspects_of(run, 2)
    assert Suspects.read(run, top=6).ids[-1] == "5.png"
    assert list(suspects_of(run, 6).id) == Suspects.read(run, top=6).ids
    assert len(Suspects.read(run, top=99)) == 6


@pytest.mark.parametrize(
    ("score", "percentile", "words"),
    [
        (2.0, 93.2, "Strong suspicion: the label fits worse than 93\xa0% of random labels"),
        (2.0, 99.9, "Strong suspicion: the label fits worse than nearly every random label"),
        (2.0, 30.0, "Clear suspicion: the label fits worse than 30\xa0% of random labels"),
        (2.0, 8.0, "Slight suspicion: the label fits worse than 8\xa0% of random labels"),
        (2.0, 0.2, f"Slight suspicion: the label fits {FEW_WORSE}"),
        (2.0, None, "Score 2.00, above the threshold of 1.00"),
        (1.0, 8.0, "Slight suspicion: the label fits worse than 8\xa0% of random labels"),
        (0.99, 8.0, "Below the threshold: the run kept it"),
        (None, None, "Never seen in training"),
    ],
)
def test_scores_in_words(score: float | None, percentile: float | None, words: str) -> None:
    assert describe_score(score, 1.0, percentile) == words


def test_what_fell_under_a_rule_is_not_compared_with_random_labels() -> None:
    assert describe_score(2.0, 1.0, None, by_rule=True).startswith("Systematic confusion: others")
    assert describe_score(0.9, 1.0, None, by_rule=True) == "Below the threshold: the run kept it"
    assert "random labels" in describe_score(2.0, 1.0, 8.0, by_rule=True)  # suspected anyway


def test_what_a_person_had_decided_is_not_asked_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["a.png", "b.png", "c.png"], tmp_path)
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path)
    table = table.append_column("reason", [[None, "decided by a person", None]])
    table = table.set_column(table.column_names.index("keep"), "keep", [[False, True, False]])
    pq.write_table(table, path)
    assert Suspects.read(Run(run.path)).ids == ["a.png", "c.png"]
    assert Suspects.read(Run(run.path), top=3).ids == ["a.png", "c.png"]


def test_copies_under_two_labels_come_first_side_by_side(tmp_path: Path) -> None:
    """d and a are one picture, as are c and e; b looks worse than all but a, f is kept."""
    ids = [f"{name}.png" for name in "abcdef"]
    run = write_run(tmp_path / "run", ids, tmp_path, keep=[False] * 5 + [True])
    same = "same picture, another label"
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path).append_column("reason", [[same, None, same, same, same, None]])
    pq.write_table(table, path)
    (run.path / "duplicates.csv").write_text(
        "group,id,given_name,conflicting,same\n"
        "1,c.png,emu,true,same pixels\n1,e.png,dog,true,same pixels\n"
        "2,a.png,cat,true,same pixels\n2,d.png,dog,true,same pixels\n"
        "3,b.png,dog,false,same pixels\n3,f.png,dog,false,same pixels\n"
    )
    for suspects in (Suspects.read(Run(run.path)), Suspects.read(Run(run.path), top=5)):
        assert suspects.ids == ["c.png", "e.png", "a.png", "d.png", "b.png"]
        assert suspects[0].words == "Same picture with another label: dog (e.png)"
        assert suspects[3].words == "Same picture with another label: cat (a.png)"
        assert suspects[4].words.startswith("Strong suspicion")
        assert list(suspects_of(Run(run.path), 5).id) == suspects.ids
    (run.path / "duplicates.csv").unlink()
    assert Suspects.read(Run(run.path)).ids == ids[:5]


def write_copies(run: Run, rows: str, reasons: list[str | None]) -> Run:
    path = run.path / "verdicts.parquet"
    pq.write_table(pq.read_table(path).append_column("reason", [reasons]), path)
    header = "group,id,given_name,conflicting,same\n"
    (run.path / "duplicates.csv").write_text(header + rows)
    return Run(run.path)


def test_copies_that_the_run_kept_stand_directly_after_those_that_lose(tmp_path: Path) -> None:
    """e loses to a and d, which are kept; b is a suspect by itself; c and f are kept."""
    ids = [f"{name}.png" for name in "abcdef"]
    run = write_run(tmp_path / "run", ids, tmp_path, keep=[1, 0, 1, 1, 0, 1])
    lines = [f"1,{name}.png,{label},true,same pixels" for name, label in ("ac", "dc", "ed")]
    reasons = [None] * 4 + [SAME_PICTURE, None]
    run = write_copies(run, "\n".join([*lines, ""]), reasons)
    suspects = Suspects.read(run)
    assert suspects.ids == ["e.png", "a.png", "d.png", "b.png"]
    assert suspects[0].words == "Same picture with another label: c (a.png) and 1 more"
    assert suspects[1].words.endswith(". Same picture with another label: d (e.png)")
    assert list(suspects_of(run).id) == ["e.png", "b.png"]
    assert Suspects.read(run, top=1).ids == ["e.png", "a.png", "d.png"]  # with their pictures
    assert Suspects.read(run, top=6).ids == [*suspects.ids, "c.png", "f.png"]


def test_a_winner_that_its_score_condemns_tells_the_score_and_stands_with_its_copies(
    tmp_path: Path,
) -> None:
    """b and d outvote f, and look wrong themselves; the order is that of `oddly clean`."""
    ids = [f"{name}.png" for name in "abcdef"]
    run = write_run(tmp_path / "run", ids, tmp_path, keep=[False] * 6)
    lines = [f"1,{name}.png,{label},true,same pixels" for name, label in ("bx", "dx", "fy")]
    run = write_copies(run, "\n".join([*lines, ""]), [None] * 5 + [SAME_PICTURE])
    suspects = Suspects.read(run)
    assert suspects.ids == ["b.png", "d.png", "f.png", "a.png", "c.png", "e.png"]
    assert list(suspects_of(run).id) == suspects.ids
    assert list(suspects_of(run, 4).id) == Suspects.read(run, top=4).ids[:4]
    worse = "Strong suspicion: the label fits worse than 77\xa0% of random labels"
    assert suspects[0].words == f"{worse}. Same picture with another label: y (f.png)"
    assert suspects[2].words == "Same picture with another label: x (b.png) and 1 more"


def test_a_run_without_a_verdict(tmp_path: Path) -> None:
    n = 3
    table = VerdictTable(
        ids=list("abc"),
        given_labels=np.zeros(n),
        losses=np.ones(n),
        scores=np.ones(n),
        counterfactual_percentiles=None,
        threshold=None,
        keep=np.ones(n, bool),
        suggested_labels=np.zeros(n),
        suggested_confidences=np.ones(n),
        class_names=["cat"],
    )
    writer = RunWriter.create(tmp_path / "run", {"method": "erm"}, {})
    with pytest.raises(
        InputError, match=r"not finished; continue it with the same command and --resume"
    ):
        Suspects.read(Run(tmp_path / "run"))
    writer.write_verdicts(table)
    writer.finish({})
    with pytest.raises(InputError, match="method erm gives no verdicts; review a run of method"):
        Suspects.read(Run(tmp_path / "run"))


def test_a_rule_without_a_threshold_judges_too(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["a.png", "b.png"], "x", keep=[False, True])
    path = run.path / "verdicts.parquet"
    table = pq.read_table(path)
    for name in ("threshold", "counterfactual_percentile"):
        nothing = pa.nulls(2, pa.float32())
        table = table.set_column(table.column_names.index(name), name, nothing)
    pq.write_table(table, path)
    suspects = Suspects.read(Run(run.path))
    assert suspects.ids == ["a.png"] and suspects[0].words == "Score 4.00"


def test_damaged_verdicts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", ["a.png", "b.png"], "x")
    file = run.path / "verdicts.parquet"
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["score"]), file)
    with pytest.raises(InputError, match="has no column score"):
        Suspects.read(run)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InputError, match="truncated"):
        Suspects.read(run)
