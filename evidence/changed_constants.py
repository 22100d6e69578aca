"""The default with one constant changed at a time: changed_constants.json.

    python -m evidence.changed_constants --data-dir DATA      # 38 rows; half an hour on a core

Recorded heads on CIFAR-10, and digits trained from scratch, whose scores at E are judged again with
every change. What decides when E comes and how epochs count needs every epoch's scores: for the
recorded heads alone. A change that leaves the verdict on a training as it was is not in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from evidence import recordings
from evidence.again import Cells, Row, Table, main, make, options
from evidence.called_labels import label_digits
from evidence.changes import EPOCHS, JUDGING, SCRATCH, SHORT, changed
from evidence.engine_runs import judge
from evidence.figures import figures
from evidence.recorded_cases import CHOSEN, HELD_OUT, Case, Loads, loads_from, with_data_dir
from evidence.small_trainings import RESNET, WRN
from evidence.valley import NETWORKS
from oddly.core import Verdict, denoiser
from oddly.core.judging import judge_by_sentinels
from oddly.core.sentinels.planting import Scored

LATE = 0.6  # of the epochs: an E at which the weights of the epochs matter
Again = Callable[[], tuple[Verdict, Any]]  # and which labels were wrong


def make_row(again: Again, constants: dict[str, tuple[float, ...]]) -> Row:
    verdict, wrong = again()
    now, changes = tell(verdict, wrong), {}
    for constant, values in constants.items():
        for value in values:
            with changed(constant, value):
                found = tell(*again())
            if any(found[key] != now[key] for key in ("removed", "f1", "doubted") if key in now):
                changes[f"{constant} = {value:.3g}"] = found
    best = figures(verdict.keep.numpy(), verdict.scores.numpy(), wrong).get("best_f1")
    about = {"wrong": round(float(np.mean(wrong)), 4), "examples": len(wrong), "best_f1": best}
    return about | {"contrast": round(verdict.contrast or 0.0, 2), "now": now, "changed": changes}


def tell(verdict: Verdict, wrong: Any) -> Row:
    known = figures(verdict.keep.numpy(), verdict.scores.numpy(), wrong)
    lost = round(float((~verdict.keep.numpy() & ~wrong).sum() / max(1, (~wrong).sum())), 4)
    row: Row = {"epoch": verdict.epoch, "removed": known["removed"]}
    row |= {"f1": known["f1"]} if "f1" in known else {}
    return row | {"right_labels_lost": lost, "doubted": verdict.tell_doubt() is not None}


def row_of_head(case: Case, loads: Loads) -> Row:
    recording = case.record(loads)
    wrong = recording.wrong.numpy()
    row = make_row(lambda: (recording.judge(), wrong), EPOCHS)
    with remembering(recordings) as calls:
        recording.judge()
    more = make_row(partial(judge_again, calls[0], wrong), JUDGING)
    assert more["now"] == row["now"]
    late: Row = {"with": tell(recording.judge(round(LATE * len(recording.scores))), wrong)}
    with changed("sentinels.planting.SHARPNESS", 0):
        late["without"] = tell(recording.judge(late["with"]["epoch"]), wrong)
    return row | {"changed": row["changed"] | more["changed"], "weights_late": late}


def row_of_digits(labels: str, asked: dict[str, Any]) -> Row:
    with remembering(denoiser) as calls:
        _, wrong, _ = judge(label_digits(labels, 0), None, method="odd", seed=0, **asked)
    return make_row(partial(judge_again, calls[0], wrong), JUDGING)


@contextmanager
def remembering(module: Any) -> Iterator[list[tuple[Any, ...]]]:
    """What that module has judged."""
    calls: list[tuple[Any, ...]] = []

    def note(*args: Any) -> Verdict:
        calls.append(copied(args))
        return judge_by_sentinels(*args)

    with mock.patch.object(module, "judge_by_sentinels", note):
        yield calls


def judge_again(args: tuple[Any, ...], wrong: Any) -> tuple[Verdict, Any]:
    return judge_by_sentinels(*copied(args)), wrong


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Scores may be shifted in place."""
    examples, *rest = args
    return (Scored(*(column.clone() for column in examples)), *rest)


def cells(loads: Loads) -> Cells:
    for case in (*CHOSEN, *HELD_OUT):
        if case.data == "cifar10":
            yield {"case": f"{case.name}, head on features"}, partial(row_of_head, case, loads)
    for network in (WRN, RESNET):
        for labels in SCRATCH:
            told = labels if labels == "clean" else f"{labels} %"
            row = partial(row_of_digits, labels, NETWORKS[network])
            yield {"case": f"digits, {told}, {network}"}, row
    for labels, epochs in SHORT:
        row = partial(row_of_digits, labels, {**NETWORKS[WRN], "epochs": epochs})
        yield {"case": f"digits, {labels} %, {WRN}, {epochs} epochs"}, row


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    make(Table("changed_constants.json", "rows"), cells(loads_from(args)), args)


if __name__ == "__main__":
    main(run)
