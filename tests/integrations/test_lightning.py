"""The callback inside a real Lightning Trainer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, WeightedRandomSampler

from oddly.core import Verdict
from oddly.errors import InputError
from tests.integrations.toy import (
    BATCH,
    EPOCHS,
    Dicts,
    K,
    N,
    check_epoch,
    given_set,
    make_blobs,
    score,
)

lightning = pytest.importorskip("lightning")

from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

from oddly.integrations.lightning import Denoise  # noqa: E402
from tests.integrations.modules import (  # noqa: E402
    QUIET,
    Blobs,
    make_trainer,
    train_loader,
    unseen_loader,
)

ROOT = Path(__file__).resolve().parents[2]
pytestmark = QUIET


class Run:
    """One training and all that it left."""

    def __init__(
        self,
        *callbacks: Any,
        loader: Any = None,
        module: Any = None,
        resume: Path | None = None,
        denoise: Any = None,
        **options: Any,
    ) -> None:
        self.denoise = denoise or Denoise(K)
        self.module = module or Blobs()
        self.trainer = make_trainer(self.denoise, *callbacks, **options)
        loader = train_loader() if loader is None else loader
        self.trainer.fit(self.module, loader, unseen_loader(), ckpt_path=resume and str(resume))

    @property
    def verdict(self) -> Verdict:
        assert self.denoise.verdict is not None
        return self.denoise.verdict

    @property
    def weights(self) -> Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in self.module.parameters()])

    def seen(self, epoch: int) -> tuple[Tensor, Tensor]:
        inputs, labels = zip(*self.module.seen[epoch], strict=True)
        return torch.cat(inputs), torch.cat(labels)


@pytest.fixture(scope="module")
def whole() -> Run:
    """A training that nobody interrupted."""
    return Run()


def same(one: Verdict, other: Verdict) -> bool:
    return torch.equal(one.keep, other.keep) and torch.equal(one.scores, other.scores)


def test_finds_the_wrong_labels(whole: Run) -> None:
    _, given, true = make_blobs()
    precision, recall = score(whole.verdict.keep, given, true)
    assert precision > 0.95
    assert recall > 0.9
    assert torch.equal(whole.verdict.labels.long(), given)
    assert not whole.verdict.scores.isnan().any()
    assert list(whole.verdict.to_pandas()["keep"]) == whole.verdict.keep.tolist()


def test_trains_on_kept_examples_alone_after_the_verdict(whole: Run) -> None:
    for epoch in range(EPOCHS):
        check_epoch(epoch, *whole.seen(epoch), whole.verdict)


def test_schedule_and_progress_end_where_they_should(whole: Run) -> None:
    assert whole.trainer.global_step == EPOCHS * N // BATCH
    assert whole.trainer.num_training_batches == N // BATCH
    rate = whole.trainer.optimizers[0].param_groups[0]["lr"]
    assert rate == pytest.approx(0, abs=1e-9)
    assert whole.module.validated == EPOCHS * 2 + 2  # every epoch, and the sanity check


def test_it_does_better_than_without(whole: Run) -> None:
    """On the labels given; the network is too small to learn every wrong one by heart."""
    module = Blobs()
    trainer = make_trainer()
    trainer.fit(module, train_loader(), unseen_loader())
    points, _, true = make_blobs(1000, seed=2)

    def loss(net: Any) -> float:
        with torch.no_grad():
            return float(torch.nn.functional.cross_entropy(net(points), true))

    assert loss(whole.module.net) < 0.7 * loss(module.net)


@pytest.mark.parametrize(
    ("saving", "steps"),
    [
        ({"every_n_epochs": 1, "save_on_train_epoch_end": True}, (48, 160)),
        ({"every_n_epochs": 1}, (48, 160)),  # when validation is over, inside the epoch
        ({"every_n_train_steps": 1}, (7, 48, 141, 144, 150)),  # E is 9 epochs of 16
    ],
)
def test_resumed_it_comes_to_the_same_verdict_and_weights(
    whole: Run, tmp_path: Path, saving: dict[str, Any], steps: tuple[int, ...]
) -> None:
    assert whole.verdict.epoch == 9
    saver = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, **saving)
    assert same(Run(saver, enable_checkpointing=True).verdict, whole.verdict)
    for step in steps:
        resumed = Run(resume=tmp_path / f"step={step}.ckpt")
        assert same(resumed.verdict, whole.verdict), step
        torch.testing.assert_close(resumed.weights, whole.weights, rtol=0, atol=1e-6)
        assert resumed.trainer.global_step == whole.trainer.global_step


def test_a_test_with_older_weights_leaves_the_verdict(tmp_path: Path) -> None:
    saver = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_epochs=2)

    class Tested(Blobs):
        def test_step(self, batch: Any, number: int) -> None:
            self.validation_step(batch, number)

    run = Run(saver, enable_checkpointing=True, module=Tested())
    verdict = run.verdict
    run.trainer.test(run.module, unseen_loader(), ckpt_path=str(tmp_path / "step=32.ckpt"))
    assert run.denoise.verdict is verdict


def test_a_second_fit_begins_anew(whole: Run) -> None:
    run = Run()
    module = Blobs()
    run.trainer.fit_loop.epoch_progress.reset()
    again = make_trainer(run.denoise)
    again.fit(module, train_loader(), unseen_loader())
    assert same(run.verdict, whole.verdict)
    assert len(module.seen) == EPOCHS


@pytest.mark.parametrize(
    "options",
    [
        {"accumulate_grad_batches": 3},
        {"precision": "bf16-mixed"},
        {"val_check_interval": 0.25},
        {"limit_train_batches": 14},
        {"max_epochs": -1, "max_steps": EPOCHS * N // BATCH},
    ],
    ids=str,
)
def test_other_ways_to_train(options: dict[str, Any]) -> None:
    _, given, true = make_blobs()
    precision, recall = score(Run(**options).verdict.keep, given, true)
    assert precision > 0.9
    assert recall > 0.8


def test_in_workers_that_live_on_the_given_labels_come_back(whole: Run) -> None:
    run = Run(loader=train_loader(num_workers=1, persistent_workers=True))
    assert same(run.verdict, whole.verdict)
    torch.testing.assert_close(run.seen(EPOCHS - 1), whole.seen(EPOCHS - 1))


def test_a_data_module_with_dictionaries_and_its_own_collation(whole: Run) -> None:
    class Data(lightning.LightningDataModule):
        def train_dataloader(self) -> Any:
            points, given, _ = make_blobs()
            return DataLoader(Dicts(points, given), BATCH, shuffle=True, collate_fn=collate)

        def val_dataloader(self) -> Any:
            return unseen_loader()

    class Module(Blobs):
        def training_step(self, batch: Any, number: int) -> Any:
            assert sorted(batch) == ["labels", "x"]
            return super().training_step((batch["x"], batch["labels"]), number)

    def collate(items: list[Any]) -> dict[str, Tensor]:
        labels = torch.tensor([item["labels"] for item in items])
        return {"x": torch.stack([item["inputs"] for item in items]), "labels": labels}

    denoise, module = Denoise(K), Module()
    make_trainer(denoise).fit(module, datamodule=Data())
    assert denoise.verdict is not None
    assert same(denoise.verdict, whole.verdict)


@pytest.mark.parametrize("flag", [{"fast_dev_run": True}, {"overfit_batches": 2}], ids=str)
def test_debugging_is_left_alone(flag: dict[str, Any]) -> None:
    denoise, module = Denoise(K), Blobs()
    loader = train_loader(shuffle=False)
    make_trainer(denoise, **{"max_epochs": 2, **flag}).fit(module, loader, unseen_loader())
    assert denoise.verdict is None
    assert module.seen


def test_who_stops_early_gets_a_verdict_all_the_same() -> None:
    class Stop(lightning.Callback):
        def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
            trainer.should_stop = trainer.current_epoch == 2

    denoise = Denoise(K, prune_after=8)
    make_trainer(denoise, Stop()).fit(Blobs(), train_loader())
    assert denoise.verdict is not None and denoise.verdict.epoch == 3


def test_who_ends_before_e_is_told() -> None:
    denoise = Denoise(K, epochs=100, prune_after=100)
    with pytest.warns(UserWarning, match="training ended before the verdict"):
        make_trainer(denoise, max_epochs=1).fit(Blobs(), train_loader())
    assert denoise.verdict is None


class OnlyLoss(Blobs):
    def training_step(self, batch: Any, number: int) -> Any:
        return super().training_step(batch, number)["loss"]


class Constant(Blobs):
    """Without a schedule, which would have to know when training ends."""

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.2)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(given_set())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"module": OnlyLoss()}, 'must return {"loss": loss, "logits": logits}'),
        ({"denoise": Denoise(K - 1)}, r"logits must be \(batch, 4\)"),
        (
            {"max_epochs": -1, "module": Constant()},
            "pass epochs=… so that E can be found, or prune_after=E",
        ),
        ({"loader": DataLoader(Stream(), BATCH)}, "an iterable dataset has no indices"),
        ({"loader": [train_loader()]}, "a single train loader, got a list of 1: return one Da"),
        (
            {"loader": train_loader(shuffle=None, sampler=WeightedRandomSampler([1.0] * N, N))},
            "WeightedRandomSampler would be lost",
        ),
        ({"reload_dataloaders_every_n_epochs": 1}, "Denoise needs a single loader"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_told_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Run(**settings)
    assert "\n" not in str(caught.value)


def run_ranks(part: str, folder: Path, **variables: str) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "tests/integrations/ranks.py"), part, str(folder)],
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables},
    )


@pytest.mark.slow
def test_two_processes_come_to_the_verdict_of_one(whole: Run, tmp_path: Path) -> None:
    run_ranks("lightning", tmp_path)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for key, value in first["verdict"].items():
        if isinstance(value, Tensor):
            assert torch.equal(value, second["verdict"][key]), key
    assert torch.equal(first["verdict"]["keep"], whole.verdict.keep)
    assert torch.equal(first["verdict"]["labels"].long(), make_blobs()[1])
    assert not first["verdict"]["scores"].isnan().any()
    assert first["seen"] == second["seen"] == dict.fromkeys(range(EPOCHS), N // 2)
    assert first["steps"] == second["steps"] == EPOCHS * N // BATCH


@pytest.mark.slow
def test_the_verdict_of_spawned_processes_reaches_the_one_that_asked(
    whole: Run, tmp_path: Path
) -> None:
    passing = tmp_path / "passing"
    passing.mkdir()
    run_ranks("spawn", tmp_path, TMPDIR=str(passing))
    reached = torch.load(tmp_path / "parent.pt", weights_only=True)
    assert torch.equal(reached["keep"], whole.verdict.keep)
    assert not list(passing.glob("oddly-*"))  # nothing stays behind


def test_a_new_fit_forgets_what_spawned_processes_left(whole: Run) -> None:
    denoise = Denoise(K)
    torch.save(whole.verdict.state_dict(), denoise._left)
    assert denoise.verdict is not None and torch.equal(denoise.verdict.keep, whole.verdict.keep)
    denoise.setup(make_trainer(denoise), None, "fit")
    assert denoise.verdict is None and not denoise._left.exists()
