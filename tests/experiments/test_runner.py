"""Shared trunks, forks, deadlines: a shared run is the same run, bit for bit."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

from oddly.engine.build import build_network, prepare_data
from oddly.engine.checkpoint import load_checkpoint, milestone_path
from oddly.engine.config import RunConfig
from oddly.engine.loop import run_config
from oddly.engine.watch import Watcher
from oddly.experiments.base import Job
from oddly.experiments.estimate import AROUND_SECONDS
from oddly.experiments.results import run_name
from oddly.experiments.runner import Runner, describe
from oddly.records import Run
from tests.experiments.conftest import NOISE, TINY


def weights(run: Run) -> dict[str, torch.Tensor]:
    return load_file(run.path / "model.safetensors")


def assert_same(first: Run, second: Run) -> None:
    """Weights, verdicts and curves, to the last bit."""
    a, b = weights(first), weights(second)
    assert a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
    names = ("epoch", "lr", "train_loss", "test_accuracy", "kept")
    rows = [[[row[name] for name in names] for row in run.metrics] for run in (first, second)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("method", ["odd", "odd_mixup"])
@pytest.mark.parametrize("prune_after", [1, 3])
def test_a_fork_is_the_run_it_stands_for(
    runner: Runner, tmp_path: Path, method: str, prune_after: int
) -> None:
    config = TINY.paper("synthetic", 0, method=method, prune_after=prune_after, **NOISE)
    job = Job(config, TINY.trunk("synthetic", 0, **NOISE))
    runner.train(job)
    forked = Run(runner.folder(config))
    direct = run_config(config, tmp_path / "direct")
    assert_same(forked, direct)
    assert (forked.path / "verdicts.parquet").read_bytes() == (
        direct.path / "verdicts.parquet"
    ).read_bytes()
    trunk = runner.folder(job.trunk)  # type: ignore[arg-type]
    assert trunk.exists() == (prune_after > 1)  # nothing to share before the first epoch
    if prune_after > 1:
        assert len(Run(trunk).metrics) == prune_after and not Run(trunk).is_done
        shown = runner.store.find(job.trunk)  # type: ignore[arg-type]
        assert shown is not None and not shown.is_finished  # what figures are read off
        assert list(shown.snapshots) == ["1", "2", "3"]


def test_the_trunk_is_plain_training(runner: Runner, tmp_path: Path) -> None:
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    runner.train(Job(trunk))
    erm = run_config(TINY.config("synthetic", 0, method="erm", **NOISE), tmp_path / "erm")
    assert_same(Run(runner.folder(trunk)), erm)


def test_forks_and_trunk_share_every_epoch_before_e(runner: Runner) -> None:
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    jobs = [
        Job(trunk),
        *(
            Job(TINY.paper("synthetic", 0, prune_after=e, percentile=p, **NOISE), trunk)
            for e in (3, 5)
            for p in (10.0, 50.0)
        ),
    ]
    seen: list[tuple[str, int]] = []

    class Count(Watcher):
        def begin(self, title: str, folder: Path, epochs: int, finished: int) -> None:
            self.folder = folder.name

        def end_epoch(self, row: Any) -> None:
            seen.append((self.folder, row["epoch"]))

    runner.watcher = Count()
    assert runner.run(jobs) == jobs
    assert sum(name == run_name(trunk) for name, _ in seen) == 6
    assert len(seen) == 6 + 2 * (6 - 2) + 2 * (6 - 4)


def test_a_trunk_that_went_past_is_grown_again(runner: Runner) -> None:
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    runner.train(Job(trunk))  # nobody asked for milestones
    config = TINY.paper("synthetic", 0, **NOISE)
    runner.train(Job(config, trunk))
    again = runner.runs / f"{run_name(trunk)}-to-2"
    assert milestone_path(again, 2).exists() and len(Run(again).metrics) == 3
    assert Run(runner.folder(config)).is_done


class Kill(Watcher):
    """Pulls the plug after so many epochs, wherever that is."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def end_epoch(self, row: Any) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_killed_again_and_again_it_gives_the_same(runner: Runner, tmp_path: Path) -> None:
    config = TINY.paper("synthetic", 0, **NOISE)
    jobs = [Job(TINY.trunk("synthetic", 0, **NOISE)), Job(config, TINY.trunk("synthetic", **NOISE))]
    for epochs in (1, 3, 2, 99):
        runner.watcher = Kill(epochs)
        try:
            runner.run([job for job in jobs if not job.is_stored(runner.store.find(job.config))])
        except KeyboardInterrupt:
            continue
    assert_same(Run(runner.folder(config)), run_config(config, tmp_path / "direct"))


def test_out_of_time_it_saves_and_goes_on(runner: Runner, tmp_path: Path) -> None:
    config = TINY.paper("synthetic", 0, **NOISE)
    job = Job(config)
    runner.deadline = time.monotonic() - 1
    for epochs in range(1, 6):  # one epoch each time: it never does nothing, and never more
        assert runner.run([job]) == []
        assert len(Run(runner.folder(config)).metrics) == epochs
    assert runner.run([job]) == [job]
    assert_same(Run(runner.folder(config)), run_config(config, tmp_path / "direct"))


def test_the_first_job_that_fits_goes_first(runner: Runner) -> None:
    long = Job(TINY.config("synthetic", method="erm"))
    short = Job(TINY.trunk("synthetic"), until=1)
    assert runner.choose([long, short]) == long
    seconds = (runner.estimate(short) + runner.estimate(long)) / 2
    runner.deadline = time.monotonic() + seconds
    assert runner.choose([long, short]) == short
    runner.deadline = time.monotonic() + 1
    assert runner.choose([long, short]) == long
    assert runner.choose([long, short], begin_anyhow=False) is None


def test_when_nothing_more_fits_it_says_what_comes_next(runner: Runner) -> None:
    """Begun anyhow is only the very first: else little time would never lead anywhere."""
    told: list[str] = []
    runner.tell = told.append
    jobs = [Job(TINY.trunk("synthetic", seed), until=1) for seed in range(2)]
    runner.deadline = time.monotonic() + 1
    assert runner.run(jobs) == jobs[:1]
    assert told[0].startswith("no run fits in") and "seed 0" in told[0]
    assert told[-1].startswith("out of time for another run; next: plain training on synthetic, no")


def test_snapshots_are_taken_and_stored(runner: Runner) -> None:
    job = Job(TINY.trunk("synthetic", 0, **NOISE), until=4, snapshots=(2, 4))
    runner.train(job)
    result = runner.store.find(job.config)
    assert result is not None and job.is_stored(result) and not result.is_finished
    assert list(result.snapshots) == ["1", "2", "3", "4"]  # asked for, or usual for a trunk
    assert len(result.curve["epoch"]) == 4
    folder = runner.folder(job.config)
    assert not list(folder.glob("checkpoint-*.pt")) and (folder / "checkpoint.pt").exists()
    runner.train(Job(job.config))  # the rest of it; the snapshots stay
    whole = runner.store.find(job.config)
    assert whole is not None and whole.is_finished and whole.snapshots == result.snapshots


def test_broken_off_its_looks_are_stored(runner: Runner) -> None:
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    runner.deadline = time.monotonic() - 1
    assert runner.run([Job(trunk)]) == []
    partly = runner.store.find(trunk)
    assert partly is not None and not partly.is_finished and list(partly.snapshots) == ["1"]
    assert not Job(trunk).is_stored(partly)
    runner.deadline = None
    assert runner.run([Job(trunk)]) == [Job(trunk)]
    whole = runner.store.find(trunk)
    assert whole is not None and whole.is_finished and list(whole.snapshots) == ["1", "2", "3"]


def test_what_is_done_counts_however_little_time_is_left(runner: Runner) -> None:
    job = Job(TINY.trunk("synthetic", 0, **NOISE), until=1, snapshots=(1,))
    runner.deadline = time.monotonic() - 1
    assert runner.run([job]) == [job] and job.is_stored(runner.store.find(job.config))


def test_a_look_at_an_epoch_that_has_passed(runner: Runner) -> None:
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    runner.train(Job(trunk))
    before = runner.store.find(trunk)
    job = Job(trunk, until=5, snapshots=(5,))
    assert before is not None and not job.is_stored(before)
    runner.train(job)
    after = runner.store.find(trunk)
    assert after is not None and list(after.snapshots) == ["1", "2", "3", "5"]
    assert after.summary == before.summary and after.curve == before.curve  # the whole run's still


def test_a_snapshot_says_what_a_run_would_have_done(runner: Runner, tmp_path: Path) -> None:
    job = Job(TINY.trunk("synthetic", 0, **NOISE), until=3, snapshots=(3,))
    runner.train(job)
    result = runner.store.find(job.config)
    direct = run_config(TINY.paper("synthetic", 0, **NOISE), tmp_path / "direct").summary
    assert result is not None
    seen = result.snapshots["3"]["by_percentile"]["10"]
    for name in ("threshold", "precision", "recall", "f1"):
        assert seen[name] == pytest.approx(direct[name], rel=1e-6)
    assert seen["removed"] == pytest.approx(direct["removed_fraction"])


def test_only_at_e_and_of_clean_labels_are_the_removed_named(runner: Runner) -> None:
    """Thousands of indices per look would not be a small file."""
    clean, noisy = TINY.trunk("synthetic", 0), TINY.trunk("synthetic", 0, **NOISE)
    for trunk, named in ((clean, ["3"]), (noisy, [])):
        runner.train(Job(trunk, until=3, snapshots=(2, 3)))
        result = runner.store.find(trunk)
        assert result is not None
        verdicts = {epoch: look["by_percentile"] for epoch, look in result.snapshots.items()}
        assert [epoch for epoch, by in verdicts.items() if "indices" in by["10"]] == named
        assert not any("indices" in by["30"] for by in verdicts.values())
    told = runner.store.find(clean)
    assert told is not None
    at_e = told.snapshots["3"]["by_percentile"]["10"]
    assert len(at_e["indices"]) == len(at_e["labels"])
    assert len(at_e["indices"]) == round(at_e["removed"] * len(prepare_data(clean).train))


def test_a_sweep_after_e_is_judged_by_the_same_threshold(runner: Runner) -> None:
    """Its losses are those of the saved network on the training images as they are."""
    trunk = TINY.trunk("synthetic", 0, **NOISE)
    runner.train(Job(trunk, until=3, snapshots=(2, 3)), forks={3})
    result = runner.store.find(trunk)
    assert result is not None and "sweep" not in result.snapshots["2"]
    sweep = result.snapshots["3"]["sweep"]
    assert sweep["threshold"] == result.snapshots["3"]["by_percentile"]["10"]["threshold"]
    data = prepare_data(trunk)
    network = build_network(trunk, data, torch.device("cpu")).eval()
    state = load_checkpoint(runner.folder(trunk), "checkpoint-0003.pt")
    assert state is not None
    network.load_state_dict(state["model"])
    images, labels = data.train.images, data.train.labels
    assert isinstance(images, torch.Tensor)
    with torch.no_grad():
        losses = cross_entropy(network((images / 255 - 0.5) / 0.25), labels, reduction="none")
    assert sweep["removed"] == pytest.approx(float((losses >= sweep["threshold"]).float().mean()))


def test_a_row_with_epochs_of_its_own_is_planned_by_them(runner: Runner) -> None:
    runner.size = replace(TINY, examples=100_000)
    usual, longer = (Job(TINY.config("synthetic", method="erm", epochs=e)) for e in (6, 12))
    plain = runner.estimate(usual) - AROUND_SECONDS
    assert runner.estimate(longer) - AROUND_SECONDS == pytest.approx(2 * plain)


def test_a_training_in_a_line() -> None:
    trunk = TINY.trunk("synthetic", 1, noise=0.4, nesterov=False)
    expected = "plain training on synthetic, 40 % uniform noise, seed 1, nesterov False, to epoch 2"
    assert describe(trunk, TINY, 2) == expected
    paper = describe(TINY.paper("synthetic"), TINY)
    assert paper == "odd on synthetic, no noise, seed 0, E = 3, p = 10"
    assert describe(TINY.config("digits", method="odd"), TINY) == "odd on digits, no noise, seed 0"


def test_where_it_runs_is_no_part_of_its_name() -> None:
    config = RunConfig("digits", method="erm", model="resnet8")
    assert run_name(config) == run_name(replace(config, data_dir="elsewhere", compile=True))
    assert run_name(config) != run_name(replace(config, order_seed=1))
    assert run_name(config) != run_name(replace(config, dropout=0.3))
