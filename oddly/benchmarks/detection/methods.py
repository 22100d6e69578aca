"""The rows of the comparison: which jobs a method needs, and the verdict it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from oddly.benchmarks.detection.cases import Case
from oddly.benchmarks.detection.figures import detection_figures, suggestion_figures
from oddly.benchmarks.detection.jobs import (
    FOLDS,
    Arrays,
    Denoise,
    DenoisePaper,
    Fold,
    Job,
    Margins,
    Plain,
    WarmUp,
)
from oddly.benchmarks.detection.rivals import (
    Finding,
    Floats,
    aum_verdict,
    cleanlab_verdict,
    gmm_split,
    predicted_verdict,
)
from oddly.benchmarks.detection.store import Labels, Store

FORWARD_SHARE = 1 / 3
"""A forward pass alone, where forward and backward count as one."""


@dataclass(frozen=True)
class Method:
    """One row per case."""

    about: str
    jobs: Callable[[Case, int], Sequence[Job]]
    judge: Callable[[Sequence[Arrays], Labels, int], Finding]
    leaves_model: bool = False
    """Whether it ends with a network trained without the removed examples."""
    package: str | None = None
    """A package that its verdict needs."""


def _own(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    found = outputs[0]
    asked = ~found["keep"] & (found["predicted"] != labels.given)  # agreement is no suggestion
    said = suggestion_figures(
        found["predicted"][asked], found["confidences"][asked], labels.true[asked]
    )
    return Finding(found["keep"], found["scores"], {"suggestions": said})


def _nothing(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    losses = outputs[0]["losses"]
    return Finding(np.ones(len(losses), np.bool_), losses)


def _gmm(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    return gmm_split(outputs[0]["losses"], seed)


def _aum(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    return aum_verdict([o["margins"] for o in outputs], [o["planted"] for o in outputs])


def _cleanlab(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    return cleanlab_verdict(labels.given, join_folds(outputs))


def _predicted(outputs: Sequence[Arrays], labels: Labels, seed: int) -> Finding:
    return predicted_verdict(labels.given, join_folds(outputs))


def join_folds(outputs: Sequence[Arrays]) -> Floats:
    """Probabilities (N, K) by the network that has not seen the example; rows sum to 1."""
    index = np.concatenate([output["index"] for output in outputs])
    found = np.concatenate([output["probabilities"] for output in outputs]).astype(np.float64)
    joined = np.empty_like(found)
    joined[index] = found / found.sum(1, keepdims=True)
    return joined


def _folds(case: Case, seed: int) -> Sequence[Job]:
    return [Fold(case, seed, part) for part in range(1, FOLDS + 1)]


METHODS: dict[str, Method] = {
    "odd": Method("oddly's default", lambda c, s: [Denoise(c, s)], _own, leaves_model=True),
    "cleanlab": Method(
        "cleanlab's default cut over 5 folds", _folds, _cleanlab, package="cleanlab"
    ),
    "predicted": Method("predicted ≠ given over the same folds", _folds, _predicted),
    "aum": Method(
        "AUM, two runs with threshold examples",
        lambda c, s: [Margins(c, s, 1), Margins(c, s, 2)],
        _aum,
    ),
    "odd_paper": Method(
        "the paper's rule", lambda c, s: [DenoisePaper(c, s)], _own, leaves_model=True
    ),
    "erm_gmm": Method("DivideMix's GMM split of a warm-up", lambda c, s: [WarmUp(c, s)], _gmm),
    "erm": Method(
        "plain training, no verdict", lambda c, s: [Plain(c, s)], _nothing, leaves_model=True
    ),
}
"""In the order in which `--next` trains them."""


def finish_cell(case: Case, name: str, seed: int, store: Store) -> dict[str, Any]:
    """The cell's JSON, from the files of its jobs; needs neither data nor device."""
    method = METHODS[name]
    read = [store.read_job(job) for job in method.jobs(case, seed)]
    infos = [info for _, info in read]
    cell: dict[str, Any] = {
        "case": asdict(case),
        "method": name,
        "about": method.about,
        "seed": seed,
    }
    errors = [info["error"] for info in infos if "error" in info]
    if errors:
        return {**cell, "error": errors[0]}
    labels = store.labels(case, seed)
    judged = method.judge([arrays for arrays, _ in read], labels, seed)
    figures = detection_figures(judged.keep, judged.scores, labels.given != labels.true)
    return {
        **cell,
        "figures": {**figures, "test_accuracy": infos[0].get("test_accuracy")},
        "cost": _cost(method, infos, len(labels.given), figures["removed_fraction"] or 0.0),
        "details": judged.details,
        "config": infos[0]["config"],
        "environment": infos[0]["environment"],
        "jobs": [_brief(info) for info in infos],
    }


def _cost(
    method: Method, infos: list[dict[str, Any]], examples: int, removed: float
) -> dict[str, float]:
    """Cost relative to plain training; `to_model` adds a training on the kept examples."""
    epochs = infos[0]["plain_epochs"]
    trained = sum(info["trained_passes"] for info in infos)
    forward = sum(info["forward_passes"] for info in infos)
    factor = (trained + FORWARD_SHARE * forward) / (examples * epochs)
    return {
        "factor": factor,
        "to_model": factor + (0.0 if method.leaves_model else 1 - removed),
        "trained_passes": trained,
        "forward_passes": forward,
        "seconds": sum(info["seconds"] for info in infos),
        "jobs_at_once": max(info["jobs_at_once"] for info in infos),
    }


def _brief(info: dict[str, Any]) -> dict[str, Any]:
    """What differs between the jobs of a cell; all have one config."""
    shared = ("case", "seed", "config", "environment", "curve")
    curve = {name: info["curve"][name] for name in ("train_loss", "kept")}
    if len(set(curve["kept"])) == 1:
        curve["kept"] = curve["kept"][:1]  # the same in every epoch
    return {**{k: v for k, v in info.items() if k not in shared}, "curve": curve}
