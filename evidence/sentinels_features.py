"""The default rule on recorded heads: sentinels_features_25_epochs.json, …_held_out.json.

    python -m evidence.sentinels_features chosen --data-dir DATA      # 10 rows; 3 minutes
    python -m evidence.sentinels_features held_out --data-dir DATA    # 10 rows; 10 minutes

On a core, and some more minutes to look at the images once. DATA holds the official CIFAR-10 and
CIFAR-100 and the labels of CIFAR-10N.
"""

from __future__ import annotations

from functools import partial

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing
from evidence.figures import figures, rounded
from evidence.recorded_cases import CHOSEN, HELD_OUT, Case, Loads, loads_from, with_data_dir
from evidence.recordings import Recording

FORCED = (0.25, 0.4, 0.6)  # of the epochs


def judge(recording: Recording, at: int | None = None) -> Row:
    verdict = recording.judge(at)
    assert verdict.noise_rate is not None
    wrong = recording.wrong.numpy()
    return {
        "epoch": verdict.epoch,
        "noise_estimate": [rounded(rate) for rate in verdict.noise_rate],
        **figures(verdict.keep.numpy(), verdict.scores.numpy(), wrong),
    }


def make_row(case: Case, forced: bool, loads: Loads) -> Row:
    recording = case.record(loads)
    epochs = len(recording.scores)
    row = {
        "examples": len(recording.labels),
        "error_rate": rounded(recording.wrong.float().mean()),
        "automatic": judge(recording),
    }
    ats = [round(share * epochs) for share in FORCED] if forced else []
    return row | ({"forced": [judge(recording, at) for at in ats]} if forced else {})


def cells(cases: tuple[Case, ...], forced: bool, loads: Loads) -> Cells:
    for case in cases:
        yield {"case": case.name}, partial(make_row, case, forced, loads)


def run() -> None:
    parser = with_data_dir(options(__doc__))
    parser.add_argument("cases", choices=("chosen", "held_out"))
    args = parser.parse_args()
    chosen = args.cases == "chosen"
    file = "25_epochs" if chosen else "held_out"
    work = cells(CHOSEN if chosen else HELD_OUT, chosen, loads_from(args))
    with calling_nothing():
        make(Table(f"sentinels_features_{file}.json", "cases"), work, args)


if __name__ == "__main__":
    main(run)
