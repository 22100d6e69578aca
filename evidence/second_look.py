"""What later looks at removed examples should weigh, heads on features: second_look_features.json.

    python -m evidence.second_look --data-dir DATA     # 16 rows; 10 minutes on a core

DATA holds the official CIFAR-10 and CIFAR-100 and the labels of CIFAR-10N. The features are those
of `evidence.sentinels_features`, looked at once for both.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evidence.again import Cells, Row, Table, main, make, options
from evidence.engine_runs import calling_nothing
from evidence.features import Features
from evidence.figures import figures, rounded
from evidence.heads import HIDDEN_EPOCHS, hidden_head, train_denoised
from evidence.recorded_cases import CHOSEN, HELD_OUT, Case, Loads, loads_from, with_data_dir
from oddly.core import Denoiser, Verdict

WEIGHTS = (0.1, 0.2, 0.4)
SIXTH = 6.0
NAMES = ("removed", "f1", "average_precision")
BY_NAME = {case.name: case for case in (*CHOSEN, *HELD_OUT)}
ORDER = (
    *("CIFAR-10N aggregate", "CIFAR-10N random1", "CIFAR-10, uniform 20 %"),
    *("CIFAR-10, uniform 40 %", "CIFAR-10, asymmetric 40 %", "CIFAR-10, clean"),
    *("CIFAR-10N aggregate, seed 1", "CIFAR-10, uniform 20 %, seed 1"),
    *(f"CIFAR-10, a weak classifier's mistakes {rate} %" for rate in (10, 20, 40)),
    *("CIFAR-100, clean", "CIFAR-100, uniform 40 %"),
    *(f"CIFAR-100, a weak classifier's mistakes {rate} %" for rate in (20, 40)),
    "CIFAR-100, asymmetric 40 %",
)


def look(images: Features, given: Tensor, seed: int) -> tuple[Verdict, list[Tensor]]:
    """The verdict at E, and the margins against all labels half-way from there and at the end."""
    torch.manual_seed(seed)
    head = hidden_head(images.inputs.shape[1], images.classes)
    denoiser = Denoiser(
        len(given),
        images.classes,
        HIDDEN_EPOCHS.epochs,
        percentile=SIXTH,
        counterfactual="sentinels",
        seed=seed,
    )
    denoiser.warns = False
    margins, at, last = [], set[int](), HIDDEN_EPOCHS.epochs
    for epoch in train_denoised(head, images.inputs, given, HIDDEN_EPOCHS, denoiser):
        if denoiser.verdict is not None and not at:
            at = {epoch + round((last - epoch) / 2), last}
        if epoch in at:
            head.eval()
            with torch.no_grad():
                logits = head(images.inputs)
            head.train()
            rival = logits.scatter(1, given[:, None], -torch.inf).max(1).values
            margins.append(rival - logits.gather(1, given[:, None])[:, 0])
    return denoiser.judge_now(head), margins


def weigh(verdict: Verdict, margins: list[Tensor], weight: float) -> tuple[Tensor, Tensor]:
    """Keep and scores after all looks, had only this share of the margins been added."""
    keep, scores = verdict.keep, verdict.scores
    for margin in margins:
        scores = torch.where(keep, scores, scores + weight * margin)
        keep = keep | (scores < verdict.threshold)
    return keep, scores


def believe(verdict: Verdict, margins: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The same had all come back that a look predicted to be as given."""
    back = ~verdict.keep & torch.stack(margins).lt(0).any(0)
    below = np.nextafter(np.float32(verdict.threshold), np.float32(-9))
    capped = verdict.scores.clamp(max=float(below))
    return verdict.keep | back, torch.where(back, capped, verdict.scores)


def make_row(case: Case, seed: int, loads: Loads) -> Row:
    images = loads[case.data]()
    given, wrong = images.label(case.kind), images.label(case.kind) != images.true
    verdict, margins = look(images, torch.from_numpy(given), seed)
    rules = {
        "none": (verdict.keep, verdict.scores),
        "predicted_as_given": believe(verdict, margins),
        **{f"weight_{weight}": weigh(verdict, margins, weight) for weight in WEIGHTS},
    }
    return {
        "examples": len(given),
        "error_rate": rounded(wrong.mean()),
        "epoch": verdict.epoch,
        **{name: _short(keep, scores, wrong) for name, (keep, scores) in rules.items()},
    }


def _short(keep: Tensor, scores: Tensor, wrong: NDArray[np.bool_]) -> Row:
    found = figures(keep.numpy(), scores.numpy(), wrong)
    return {name: found[name] for name in NAMES if name in found}


def cells(loads: Loads) -> Cells:
    for name in ORDER:
        plain = name.removesuffix(", seed 1")
        yield {"case": name}, partial(make_row, BY_NAME[plain], int(plain != name), loads)


def run() -> None:
    args = with_data_dir(options(__doc__)).parse_args()
    with calling_nothing():
        make(Table("second_look_features.json", "cases"), cells(loads_from(args)), args)


if __name__ == "__main__":
    main(run)
