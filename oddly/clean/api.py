"""`oddly.clean`: from a folder or table of images to a verdict on every label."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from oddly.clean import trial
from oddly.clean.duplicates import find_duplicates, number_pictures
from oddly.clean.early import check_early
from oddly.clean.export import EXPORTS, about_breaks, check_exports
from oddly.clean.findings import suspects_of
from oddly.clean.leave import (
    check_copy_to,
    copy_cleaned,
    describe_copy,
    store_pictures,
    write_duplicates,
    write_unreadable,
    write_verdicts_csv,
)
from oddly.clean.look import Looked, look
from oddly.clean.settings import choose
from oddly.clean.survey import about_lookalikes, survey
from oddly.clean.watch import CleanWatcher
from oddly.copying import about_missing
from oddly.data import load_data
from oddly.data.base import DataOptions, LabelledData
from oddly.data.files import tell_unreadable
from oddly.engine.api import check_outside, check_resume
from oddly.engine.build import choose_device
from oddly.engine.config import RunConfig, sort_options
from oddly.engine.loop import run_config
from oddly.engine.outcome import describe_device
from oddly.engine.resume import resumed_config
from oddly.engine.whereabouts import locate, name_after
from oddly.errors import InputError, count, first_line
from oddly.methods import build_method, read_settings
from oddly.records import Run, RunWriter, check_free, count_unread, environment, writing
from oddly.report import write_report

LEFT = ("verdicts.csv", "unreadable.csv", "duplicates.csv", "report.html")


def clean(
    path: str | Path | None = None,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    skip_unreadable: bool = False,
    top: int | None = None,
    copy_to: str | Path | None = None,
    export: str | Sequence[str] = (),
    watcher: CleanWatcher | None = None,
    **options: Any,
) -> Run:
    """Find the wrong labels in a dataset and return the run.

        run = oddly.clean("photos/")
        run.verdicts.query("not keep").sort_values("score", ascending=False)

    `path`: an image folder (class sub-folders), a CSV/Parquet table of path and label, or a
    Hugging Face dataset (a folder or a Parquet file). Settings are chosen from the data; `options`
    override them with any field of `RunConfig` (image_size, model, backbone, weights, fine_tune,
    epochs, …) or any setting of the method (prune_after, percentile, …).
    `resume` continues the run in `out`. A finished run is not trained again: it is exported or
    copied, and files missing from its folder are written again.
    """
    export = [export] if isinstance(export, str) else export
    if top is not None and top < 1:
        raise InputError(f"--top must be at least 1, got {top}")
    watcher = watcher or CleanWatcher()
    if not resume and skip_unreadable and not overwrite:
        resume = _asks_for_consent(out := choose_out(path, out), path, options)
    if resume:
        folder = check_resume(out, overwrite)
        config, listed = _resumed(folder, path, skip_unreadable, options), None
        source = config.data
    else:
        folder, source = choose_out(path, out), os.path.abspath(os.path.expanduser(str(path)))
        check_outside(folder, source)
    # Check before an hour is spent, and before anything is written.
    check_exports(export, source)
    if copy_to is not None:
        check_copy_to(Path(copy_to), source)
    with writing(folder):
        if not resume:
            config, listed = _begin(path, folder, overwrite, skip_unreadable, options, watcher)
        if not (run := Run(folder)).is_done or not all((folder / name).exists() for name in LEFT):
            run = _work(folder, config, listed, watcher)
        watcher.judged(run)
        _hand_out(run, top, copy_to, export, watcher)
    return run


def _hand_out(
    run: Run,
    top: int | None,
    copy_to: str | Path | None,
    export: Sequence[str],
    watcher: CleanWatcher,
) -> None:
    """Write exports and the copy; if one fails, the others are still written."""
    doubt = " (from an unreliable verdict)" if run.doubt else ""
    suspects, failed = suspects_of(run, top), dict[str, Exception]()
    for name in export:
        try:
            watcher.note(f"wrote {EXPORTS[name](run, suspects)}{doubt}")
        except (InputError, OSError, ValueError) as error:  # also a name the format cannot hold
            failed[f"--export {name}"] = error
        else:
            if name == "ids" and (note := about_breaks(suspects)):
                watcher.note(note)
    if copy_to is not None:
        try:
            _copy(run, Path(copy_to), doubt, watcher)
        except (InputError, OSError) as error:
            failed[f"--copy-to {copy_to}"] = error
    if failed:
        told = "; ".join(f"{what}: {_reason(error)}" for what, error in failed.items())
        cause = next(iter(failed.values()))
        raise InputError(f"could not write {told} (the run itself is in {run.path})") from cause


def _copy(run: Run, target: Path, doubt: str, watcher: CleanWatcher) -> None:
    copied = copy_cleaned(run, target, watcher.reading)
    watcher.note(f"wrote {describe_copy(run, target, copied)}{doubt}")
    if note := about_missing(copied.missing):
        watcher.note(note)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = error.filename2 or error.filename
        return error.strerror.lower() + (f": {place}" if place else "")
    return first_line(error)


def choose_out(path: str | Path | None, out: str | Path | None) -> Path:
    """The folder `out`, or one named after the data."""
    if path is None:
        raise InputError("nothing to clean: give an image folder, a table or a Hugging Face folder")
    if out is not None:
        return Path(out)
    return Path("runs") / f"{name_after(os.fspath(path))}-clean"


def _begin(
    path: str | Path | None,
    folder: Path,
    overwrite: bool,
    skip_unreadable: bool,
    options: Mapping[str, Any],
    watcher: CleanWatcher,
) -> tuple[RunConfig, LabelledData]:
    """List the images, choose settings, open the run folder; nothing has been decoded yet."""
    asked, settings = sort_options(options)
    if asked.get("hold_out"):
        raise InputError("clean judges every image: remove hold_out, or use train instead")
    build_method(str(asked.get("method", "odd")), settings)  # fail early on a misspelt setting
    asked |= {"settings": settings, "skip_unreadable": skip_unreadable}
    source = os.path.abspath(os.path.expanduser(str(path)))
    listed = _list(source, skip_unreadable)
    device = choose_device(str(asked.get("device", "auto")))
    found, tried = survey(listed), None
    config, choices = choose(source, found, asked, _name_device(device))
    check_early(config, listed)
    check_free(folder, overwrite)
    if some := trial.choose_some(listed, found, asked):
        watcher.note("small images: trying one or two networks on some of them first")
        try:
            tried = trial.try_both(source, some, found, asked, device, watcher.reading)
        finally:
            watcher.end()
        config, choices = choose(source, found, asked, _name_device(device), tried)
    said = {**_complete(config), "asked": _plain(options), "tried": tried and asdict(tried)}
    RunWriter.create(folder, said, environment(describe_device(device)), overwrite)
    watcher.chosen(choices, folder)
    for note in [*listed.notes, *about_lookalikes(listed.class_names)]:
        watcher.note(note)
    return config, replace(listed, notes=())


def _list(source: str, skip_unreadable: bool) -> LabelledData:
    if not os.path.exists(source):
        raise InputError(f"{source}: no such file or folder")
    options = DataOptions(pool_splits=True, decode=False, skip_unreadable=skip_unreadable)
    return load_data(source, options)


def _name_device(device: torch.device) -> str:
    if device.type != "cpu":
        return str(describe_device(device)["device_name"])
    return f"cpu, {count(torch.get_num_threads(), 'thread')}"


def _complete(config: RunConfig) -> dict[str, Any]:
    """The contents of config.json, including the method's default settings."""
    method, _ = build_method(config.method, config.settings)
    return {**config.to_dict(), "settings": read_settings(config.method, method)}


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The user's options as plain values for config.json, to make another run like this one."""
    plain = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items()}
    return {k: v for k, v in plain.items() if isinstance(v, str | int | float)}


def _resumed(
    folder: Path, path: str | Path | None, skip_unreadable: bool, options: Mapping[str, Any]
) -> RunConfig:
    """The run's own config; the only change allowed is to leave out unreadable images."""
    source = None if path is None else str(path)
    config = resumed_config(folder, source, options)
    return replace(config, skip_unreadable=config.skip_unreadable or skip_unreadable)


def _asks_for_consent(folder: Path, path: str | Path | None, options: Mapping[str, Any]) -> bool:
    """Whether the same command ran before and stopped because images could not be read."""
    if not any(count_unread(folder)):
        return False
    with suppress(InputError):
        run = Run(folder)
        same = locate(str(run.find_path(str(run.config.get("data"))))) == locate(str(path))
        return same and not run.is_done and run.config.get("asked") == _plain(options)
    return False


def _work(
    folder: Path, config: RunConfig, listed: LabelledData | None, watcher: CleanWatcher
) -> Run:
    """Read every image, train, judge, and write everything to the run folder."""
    listed = listed or replace(_list(config.data, config.skip_unreadable), notes=())
    device = choose_device(config.device)
    try:
        looked = look(listed, config, folder, device, watcher.reading)
    finally:
        watcher.end()
    if (finished := Run(folder)).is_done:
        _check_same(finished, looked.under_labels(Path(config.labels)) if config.labels else looked)
    write_unreadable(folder, {**listed.closed, **looked.unreadable})
    _tell_unreadable(looked, config, folder, watcher)
    if config.labels:  # before finding duplicates, which compare labels
        looked = looked.under_labels(Path(config.labels))
        config = replace(config, labels=None)
    groups = find_duplicates(looked.data.train, looked.source, looked.digests)
    write_duplicates(folder, groups, looked.data)
    data = replace(looked.data, pictures=number_pictures(groups, len(looked.data.train)))
    run = finished
    if not run.is_done:  # otherwise it was interrupted in the steps below
        run = run_config(config, folder, data, resume=True, watcher=watcher)
    store_pictures(run, looked.source)
    write_verdicts_csv(run)
    write_report(run)
    return run


def _check_same(run: Run, looked: Looked) -> None:
    """Refuse to complete a finished run if the data are no longer those that it judged."""
    split, names = looked.data.train, looked.data.class_names
    given = [names[label] for label in split.labels.tolist()]
    if run.verdicts.id.tolist() != list(split.ids) or run.verdicts.given_name.tolist() != given:
        raise InputError(
            f"{looked.data.name} has changed since {run.path} judged it: other examples or given"
            " labels; run clean again with another --out"
        )


def _tell_unreadable(
    looked: Looked, config: RunConfig, folder: Path, watcher: CleanWatcher
) -> None:
    if bad := list(looked.unreadable.items()):
        told = tell_unreadable(bad, len(bad) + len(looked.data.train))
        told += f" (full list in {folder / 'unreadable.csv'})"
        if not config.skip_unreadable:
            go_on = f"oddly clean --resume --skip-unreadable --out {shlex.quote(str(folder))}"
            raise InputError(f"{told}; to leave them out, run\n  {go_on}")
        watcher.note(f"{told}; left out")
    if len(set(looked.data.train.labels.tolist())) < 2:
        raise InputError("all readable images are of one class; at least two classes are needed")
