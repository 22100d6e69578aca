"""Save a verdict as a run folder, for `oddly report` and `oddly review`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from oddly.core import Verdict
from oddly.errors import InputError
from oddly.records import Run, RunWriter, VerdictTable, environment, writing


def save_run(
    verdict: Verdict | None,
    path: Path | str,
    class_names: Sequence[str],
    ids: Sequence[Any] | None = None,
    data: Path | str | None = None,
    predictions: Tensor | Sequence[int] | None = None,
    overwrite: bool = False,
) -> Run:
    """Write a run folder for `oddly report PATH` and `oddly review PATH`.

    `ids` name the examples in the order of the dataset. If they are image files relative to the
    folder `data`, the pages show them. `predictions` (N,) are the classes that your trained
    network predicts for the training images: the labels it suggests.
    """
    if verdict is None:
        raise InputError(
            "no verdict to save: training ended before E (then call denoiser.judge_now(model)) or"
            " ran in other processes, as with ddp_spawn (then save it there)"
        )
    _check_names(class_names)
    table = _tabulate(verdict, class_names, _check_ids(verdict, ids, data), predictions)
    place = None if data is None else Path(data).expanduser().resolve()
    config = {"method": "odd", "data": place and str(place)}  # absolute: works from any folder
    summary = {
        "method": config["method"],
        "data": place and place.name,  # the pages' title
        "examples": len(verdict.keep),
        "classes": len(class_names),
        "removed": verdict.num_removed,
        "removed_fraction": verdict.removed_fraction,
        **verdict.summary(),
    }
    with writing(Path(path)):
        writer = _create(Path(path), config, overwrite)
        writer.write_verdicts(table)
        writer.write_counterfactual(verdict.origin())
        writer.finish(summary)
    return Run(path)


def _check_ids(
    verdict: Verdict, ids: Sequence[Any] | None, data: Path | str | None
) -> Sequence[str]:
    if ids is None:
        if data is not None:
            raise InputError("data needs ids: pass the image files, relative to data, as ids")
        return [str(index) for index in range(len(verdict.keep))]
    names = [str(id) for id in ids]
    if len(names) != len(verdict.keep):
        raise InputError(f"{len(names)} ids for {len(verdict.keep)} examples")
    [(name, count)] = Counter(names).most_common(1)
    if count > 1:
        raise InputError(f"ids must be unique, but '{name}' occurs {count} times")
    looks_like_file = bool(PurePath(names[0]).suffix)
    if data is None and looks_like_file:
        raise InputError(f"'{names[0]}' looks like a file: pass its folder as data")
    if data is not None:
        _check_folder(Path(data).expanduser(), names[0] if looks_like_file else None)
    return names


def _check_folder(folder: Path, first: str | None) -> None:
    if not folder.exists():
        raise InputError(f"{folder}: no such folder")
    if first is not None and folder.is_dir() and not (folder / first).exists():
        raise InputError(f"{folder / first}: no such image; ids must be files relative to data")


def _check_names(class_names: object) -> None:
    kind = type(class_names).__name__
    if isinstance(class_names, Mapping):
        raise InputError(
            f"class_names must be a list of names in class order, not a {kind}: use the values of"
            " id2label, or the keys of class_to_idx"
        )
    if isinstance(class_names, str | Set) or not isinstance(class_names, Collection):
        raise InputError(f"class_names must be a list of names, got {kind}")
    for name, count in Counter(map(str, class_names)).most_common(1):
        if count > 1:
            raise InputError(f"class names must be unique, but '{name}' occurs {count} times")


def _create(path: Path, config: Mapping[str, Any], overwrite: bool) -> RunWriter:
    try:
        return RunWriter.create(path, config, environment(), overwrite)
    except InputError as error:  # its advice is for the command line
        replace = (path / "config.json").exists() and not overwrite
        advice = "choose another folder" + " or pass overwrite=True" * replace
        raise InputError(f"{str(error).partition(';')[0]}; {advice}") from None


def _tabulate(
    verdict: Verdict,
    class_names: Sequence[str],
    ids: Sequence[str],
    predictions: Tensor | Sequence[int] | None,
) -> VerdictTable:
    if predictions is None:
        predictions = torch.full_like(verdict.labels, -1)
    return VerdictTable(
        ids=ids,
        given_labels=_check_classes("labels", verdict.labels, ids, class_names).numpy(),
        losses=verdict.losses.numpy(),
        scores=verdict.scores.numpy(),
        counterfactual_percentiles=verdict.percentiles.numpy(),
        threshold=verdict.threshold,
        keep=verdict.keep.numpy(),
        suggested_labels=_check_classes("predictions", predictions, ids, class_names).numpy(),
        suggested_confidences=torch.full(verdict.keep.shape, torch.nan).numpy(),
        class_names=[str(name) for name in class_names],
    )


def _check_classes(
    kind: str, classes: Tensor | Sequence[int], ids: Sequence[str], names: Sequence[str]
) -> Tensor:
    """One class, or -1, for each example."""
    found = torch.as_tensor(classes).cpu()
    if found.shape != (len(ids),) or found.is_floating_point():
        raise InputError(
            f"{kind} must be {len(ids)} class numbers, got {found.dtype} {tuple(found.shape)}"
        )
    low, high = int(found.min()), int(found.max())
    if low < -1 or high >= len(names):
        outside = low if low < -1 else high
        raise InputError(f"{kind} contain class {outside}, but there are {len(names)} class names")
    return found
