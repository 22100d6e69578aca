"""Cells, what is stored for them, and that every experiment is what it says."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path

import pytest

import oddly.experiments
from oddly.errors import InputError
from oddly.experiments import EXPERIMENTS
from oddly.experiments.base import Cell, Filled, Job, PaperNumber, fill, missing_jobs
from oddly.experiments.results import Store, run_name
from oddly.experiments.runner import Runner
from oddly.experiments.sizes import FAST, FULL, Size
from oddly.experiments.table1_cifar_uniform import MINUTE_ROWS, PAPER, cells
from oddly.methods import METHODS

TINY = Size(
    "tiny",
    {"model": "resnet8", "epochs": 2, "batch_size": 32, "learning_rate": 0.05, "device": "cpu"},
    prune_after=1,
)


def test_every_file_of_a_table_or_figure_is_listed_and_explains_itself() -> None:
    names = [module.name for module in pkgutil.iter_modules(oddly.experiments.__path__)]
    files = [name for name in names if name.startswith(("table", "figure", "learning", "recipe"))]
    assert len(files) == len(EXPERIMENTS) == 16
    for name in files:
        module = importlib.import_module(f"oddly.experiments.{name}")
        assert EXPERIMENTS[module.EXPERIMENT.name] is module.EXPERIMENT
        assert module.EXPERIMENT.name.split("_")[0] == name.split("_")[0]
        for word in ("Paper:", "Command: oddly reproduce", "Cost:", "Numbers to match:"):
            assert word in (module.__doc__ or ""), f"{name} lacks {word}"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_of_every_size_can_be_planned(name: str) -> None:
    experiment = EXPERIMENTS[name]
    for size in experiment.sizes.values():
        made = experiment.cells(size, 2)
        places = [(cell.row, cell.column) for cell in made]
        assert made and len(set(places)) == len(places)
        for job in (job for cell in made for job in cell.jobs):
            if job.trunk:  # a fork and its trunk differ in nothing that acts before E
                same = ("data", "noise", "noise_kind", "model", "epochs", "learning_rate")
                same += ("noise_seed", "init_seed", "order_seed", "batch_size", "restart")
                assert all(getattr(job.config, f) == getattr(job.trunk, f) for f in same)
                assert job.fork_epoch < size.epochs
            assert run_name(job.config)


def test_table1_holds_the_papers_numbers() -> None:
    table = {(cell.row, cell.column): cell for cell in cells(FULL, 1)}
    assert len(table) == 9 * 6 + 2
    assert table["ODD", "CIFAR-100 40 %"].paper == PaperNumber(72.4, 0.4)
    assert table["ERM", "CIFAR-10 20 %"].paper == PaperNumber(88.5, 0.1)
    assert table["MentorNet", "CIFAR-10 40 %"].paper == PaperNumber(89.0)
    assert table["GCE", "CIFAR-10 0 %"].paper is None
    assert sum(number is not None for row in PAPER.values() for number in row) == 40


def test_dropout_is_on_but_in_two_rows_and_trusted_labels_where_the_paper_has_a_star() -> None:
    jobs = {cell.row: cell.jobs[0] for cell in cells(FULL, 1) if cell.column == "CIFAR-100 40 %"}
    without = {row for row, job in jobs.items() if job.config.dropout == 0}
    assert without == {"ODD, no dropout", "ODD + mixup, no dropout"}
    trunk = jobs["ODD, no dropout"].trunk
    assert trunk and trunk == jobs["ODD + mixup, no dropout"].trunk and trunk.dropout == 0
    assert all(job.config.dropout == 0.3 for row, job in jobs.items() if row not in without)
    # The paper's star: these learn from labels known to be clean, and no others are given any.
    trusted = {row for row, job in jobs.items() if job.config.trusted}
    assert trusted == {"Ren", "MentorNet"}
    for row, job in jobs.items():
        assert METHODS[job.config.method].needs_trusted_labels == (row in trusted)
    # What has no dropout has no such rows, but four on what a minute gets.
    assert len(list(cells(FAST, 1))) == 9 * 6 + 4


def test_what_a_minute_gets_is_asked_of_one_column() -> None:
    minute = [cell for cell in cells(FAST, 1) if cell.row in MINUTE_ROWS]
    assert [cell.row for cell in minute] == list(MINUTE_ROWS)
    assert {cell.column for cell in minute} == {"CIFAR-10 40 %"}
    configs = {cell.row: cell.jobs[0].config for cell in minute}
    methods = [config.method for config in configs.values()]
    assert methods == ["erm", "mixup", "odd_mixup", "odd_mixup"]
    # Two differ in nothing else.
    *_, plain, reflected = configs.values()
    assert replace(plain, reflect=True) == reflected != plain
    # As many images pass by: 40 % drawn uniformly leave 64 % of the labels right.
    for config in configs.values():
        before = config.settings.get("prune_after", config.epochs)
        assert config.epochs and before
        assert before + 0.64 * (config.epochs - before) == pytest.approx(68, rel=0.03)


def test_table1_begins_with_the_most_valuable(nothing_stored: Store) -> None:
    jobs = missing_jobs(cells(FULL, 2), nothing_stored)
    first = [(j.config.data, j.config.noise, j.config.method, j.config.order_seed) for j in jobs]
    trunk = ("cifar100", 0.4, "odd", 0)
    assert first[:4] == [trunk, trunk, ("cifar100", 0.4, "odd_mixup", 0), trunk]
    assert [job.trunk is None for job in jobs[:4]] == [True, False, False, True]
    assert jobs[1].trunk == jobs[2].trunk == jobs[0].config and jobs[3].config.settings == {}
    order = list(dict.fromkeys((data, noise) for data, noise, _, seed in first[:24]))
    assert order == [
        *(("cifar100", 0.4), ("cifar10", 0.4), ("cifar100", 0.2), ("cifar10", 0.2)),
        *(("cifar100", 0.0), ("cifar10", 0.0)),
    ]
    seeds = [seed for *_, seed in first]
    assert seeds == sorted(seeds)


def test_fill_gives_mean_spread_and_number(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    runner = Runner(store, TINY, tmp_path / "runs", tell=lambda text: None)
    jobs = tuple(Job(TINY.config("synthetic", seed, method="erm")) for seed in range(3))
    cell = Cell("row", "column", PaperNumber(50.0), jobs)
    nothing = Cell("other", "column", None, ())
    for job in jobs[:2]:
        runner.train(job)
    got, empty = fill([cell, nothing], store)
    values = [store.find(job.config).summary["test_accuracy"] for job in jobs[:2]]  # type: ignore[union-attr]
    assert list(got.values) == pytest.approx(values) and empty.values == ()
    assert got.ours == pytest.approx(sum(values) / 2)
    assert missing_jobs([cell, nothing], store) == [jobs[2]]
    joint = Cell("row", "joint", None, jobs, joint=lambda results: len(results))
    assert fill([joint], store)[0].values == ()  # it waits for all
    runner.train(jobs[2])
    assert fill([joint], store)[0].values == (3,) and len(fill([cell], store)[0].values) == 3


def test_a_filled_cell_by_hand() -> None:
    cell = Filled("ODD", "CIFAR-10", PaperNumber(92.8, 0.2), (92.0, 93.0, 94.0))
    assert cell.to_dict() == {
        "row": "ODD",
        "column": "CIFAR-10",
        "paper": 92.8,
        "paper_spread": 0.2,
        "ours": 93.0,
        "spread": 1.0,
        "n": 3,
    }
    assert Filled("a", "b", None, ()).to_dict()["ours"] is None
    assert str(PaperNumber(97.0, 0.1)) == "97.0±0.1" and str(PaperNumber(74.62)) == "74.62"


def test_changes_of_the_recipe_are_other_runs() -> None:
    changed = FULL.changed({"dropout": "0.1", "prune_after": "60", "nesterov": "no"})
    config = changed.paper("cifar100", noise=0.4)
    assert config.dropout == 0.1 and not config.nesterov and config.settings["prune_after"] == 60
    assert run_name(config) != run_name(FULL.paper("cifar100", noise=0.4))
    assert FULL.config("cifar100", method="odd").settings == {}  # E of our default is found
    blanked = FULL.changed({"cutout": "8", "mirror_test": "yes"}).trunk("cifar10")
    assert (blanked.cutout, blanked.mirror_test) == (8, True)
    other = FULL.changed({"model": "resnet18"}).trunk("cifar10")
    assert (other.model, other.dropout) == ("resnet18", 0.0)
    with pytest.raises(InputError, match="epochs must be int, got 'many'"):
        FULL.changed({"epochs": "many"})


def test_a_result_under_a_wrong_name_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    Runner(store, TINY, tmp_path / "runs", tell=lambda text: None).train(
        Job(TINY.config("synthetic", method="erm"))
    )
    other = TINY.config("synthetic", 1, method="erm")
    (file,) = tmp_path.glob("*.json")
    file.rename(tmp_path / f"{run_name(other)}.json")
    with pytest.raises(InputError, match="contains a different run"):
        store.find(other)


def test_a_number_that_is_not_round_finds_its_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = TINY.config("synthetic", method="erm", learning_rate=0.1 * 0.1, epochs=1)
    Runner(store, TINY, tmp_path / "runs", tell=lambda text: None).train(Job(config))
    assert store.find(config) is not None
