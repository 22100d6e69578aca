"""The Trainer of transformers, trained for real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from oddly.core import Verdict
from oddly.errors import InputError
from tests.integrations.toy import BATCH, EPOCHS, Dicts, K, N, check_epoch, make_blobs, score

transformers = pytest.importorskip("transformers")

from oddly.integrations.huggingface import DenoisingTrainer  # noqa: E402
from tests.integrations.trainers import Blobs, make_arguments, make_trainer  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A training that nobody interrupted, evaluated after every epoch."""
    trainer = make_trainer(tmp_path_factory.mktemp("whole"), eval_strategy="epoch")
    trainer.train()
    return trainer


def same(one: Verdict, other: Verdict) -> bool:
    return torch.equal(one.keep, other.keep) and torch.equal(one.scores, other.scores)


def weights(trainer: Any) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_finds_the_wrong_labels(whole: Any) -> None:
    _, given, true = make_blobs()
    precision, recall = score(whole.verdict.keep, given, true)
    assert precision > 0.95
    assert recall > 0.9
    assert torch.equal(whole.verdict.labels.long(), given)
    assert not whole.verdict.scores.isnan().any()
    logged = [row for row in whole.state.log_history if "removed" in row]
    assert [row["removed"] for row in logged] == [whole.verdict.num_removed]


def test_trains_on_kept_examples_alone_after_the_verdict(whole: Any) -> None:
    batches, steps = whole.model.seen, N // BATCH
    assert len(batches) == EPOCHS * steps
    for epoch in range(EPOCHS):
        inputs, labels = zip(*batches[epoch * steps :][:steps], strict=True)
        check_epoch(epoch, torch.cat(inputs), torch.cat(labels), whole.verdict)


def test_schedule_and_progress_end_where_they_should(whole: Any) -> None:
    assert whole.state.global_step == whole.state.max_steps == EPOCHS * N // BATCH
    assert whole.state.epoch == EPOCHS
    assert whole.lr_scheduler.get_last_lr()[0] == pytest.approx(0, abs=1e-9)
    assert len([row for row in whole.state.log_history if "eval_loss" in row]) == EPOCHS


def test_it_does_better_than_without(whole: Any, tmp_path: Path) -> None:
    plain = make_trainer(tmp_path, kind=transformers.Trainer)
    plain.train()
    assert whole.evaluate()["eval_loss"] < 0.7 * plain.evaluate()["eval_loss"]


def test_outside_of_training_the_loader_is_the_usual_one(whole: Any) -> None:
    verdict = whole.verdict
    batch = next(iter(whole.get_train_dataloader()))
    assert sorted(batch) == ["inputs", "labels"]
    assert whole.verdict is verdict


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"save_strategy": "epoch"}, (32, 96)),
        ({"save_strategy": "steps", "save_steps": 7}, (7, 70)),  # E is 4 epochs of 16
        ({"save_strategy": "steps", "save_steps": 16}, (32, 64)),  # at an epoch's last step
    ],
    ids=str,
)
def test_resumed_it_comes_to_the_same_verdict_and_weights(
    whole: Any, tmp_path: Path, options: dict[str, Any], steps: tuple[int, ...]
) -> None:
    assert whole.verdict.epoch == 4
    make_trainer(tmp_path / "saved", **options).train()
    for step in steps:
        resumed = make_trainer(tmp_path / "resumed")
        resumed.train(resume_from_checkpoint=str(tmp_path / "saved" / f"checkpoint-{step}"))
        assert same(resumed.verdict, whole.verdict), step
        torch.testing.assert_close(weights(resumed), weights(whole), rtol=0, atol=1e-6)
        assert resumed.state.global_step == whole.state.global_step


@pytest.mark.filterwarnings("ignore:training was interrupted")
def test_resumed_from_the_last_checkpoint(whole: Any, tmp_path: Path) -> None:
    class Killed(transformers.TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 40:
                raise KeyboardInterrupt

    options = {"save_strategy": "steps", "save_steps": 13}
    killed = make_trainer(tmp_path, **options)
    killed.add_callback(Killed())
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    resumed = make_trainer(tmp_path, **options)
    resumed.train(resume_from_checkpoint=True)
    assert same(resumed.verdict, whole.verdict)


@pytest.mark.filterwarnings("ignore:.*torch.cpu.amp.autocast:FutureWarning")  # transformers 4.49
@pytest.mark.parametrize(
    "options",
    [
        {"gradient_accumulation_steps": 3, "learning_rate": 0.4},
        {"bf16": True},
        {"max_steps": EPOCHS * N // BATCH, "num_train_epochs": 3},
        {"dataloader_drop_last": True, "per_device_train_batch_size": 60},
    ],
    ids=str,
)
def test_other_ways_to_train(tmp_path: Path, options: Any, monkeypatch: Any) -> None:
    # Older versions of transformers leave bf16 here, and later tests would train with it.
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    _, given, true = make_blobs()
    trainer = make_trainer(tmp_path, **options)
    trainer.train()
    precision, recall = score(trainer.verdict.keep, given, true)
    assert precision > 0.9
    assert recall > 0.8
    assert trainer.state.global_step == trainer.state.max_steps


def test_in_workers_that_live_on_the_given_labels_come_back(whole: Any, tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, dataloader_num_workers=1, dataloader_persistent_workers=True)
    trainer.train()
    assert same(trainer.verdict, whole.verdict)
    for one, other in zip(trainer.model.seen, whole.model.seen, strict=True):
        assert torch.equal(one[1], other[1])


def test_a_trainer_of_ones_own(tmp_path: Path) -> None:
    class Mine(transformers.Trainer):  # type: ignore[misc,name-defined]
        asked = 0

        def compute_loss(self, *args: Any, **more: Any) -> Any:
            Mine.asked += 1
            return super().compute_loss(*args, **more)

    class Denoised(DenoisingTrainer, Mine):  # type: ignore[misc]
        pass

    trainer = make_trainer(tmp_path, kind=Denoised)
    trainer.train()
    assert trainer.verdict is not None
    assert Mine.asked == EPOCHS * N // BATCH


def test_a_dataset_of_the_hub_and_classes_from_the_model(tmp_path: Path) -> None:
    """Columns are removed as ever; the number of classes is the model's."""
    datasets = pytest.importorskip("datasets")
    _, given, true = make_blobs()
    generator = torch.Generator().manual_seed(0)
    points = 2 * torch.randn(K, 1, 4, 4, generator=generator)[true]
    points += 0.5 * torch.randn(points.shape, generator=generator)
    table = datasets.Dataset.from_dict(
        {"pixel_values": points.numpy(), "label": given.tolist(), "note": ["x"] * N}
    )
    torch.manual_seed(0)
    config = transformers.ConvNextConfig(
        num_channels=1, patch_size=2, num_stages=1, hidden_sizes=[16], depths=[1], num_labels=K
    )
    model = transformers.ConvNextForImageClassification(config)
    args = make_arguments(
        tmp_path,
        num_train_epochs=10,
        learning_rate=0.01,
        optim="adamw_torch",
        label_smoothing_factor=0.1,  # takes the labels out of the batch
    )
    trainer = DenoisingTrainer(model=model, args=args, train_dataset=table)
    trainer.train()
    assert trainer.verdict is not None
    precision, recall = score(trainer.verdict.keep, given, true)
    assert precision > 0.9
    assert recall > 0.9


class Stop(transformers.TrainerCallback):
    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = round(state.epoch) >= self.epochs


def test_who_stops_early_gets_a_verdict_all_the_same(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, denoise={"num_classes": K, "prune_after": 8})
    trainer.add_callback(Stop(3))
    trainer.train()
    assert trainer.verdict is not None and trainer.verdict.epoch == 3
    _, given, true = make_blobs()
    precision, recall = score(trainer.verdict.keep, given, true)
    assert precision > 0.9 and recall > 0.9
    assert "train_loss" in trainer.state.log_history[-1]  # nothing after the loggers have closed


class Interrupt(transformers.TrainerCallback):
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 56:
            raise KeyboardInterrupt


def test_who_interrupts_before_e_is_told_how_to_get_a_verdict(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    with pytest.raises(InputError, match="nothing to judge"):
        trainer.judge_now()
    trainer.add_callback(Interrupt())
    how = r"interrupted before .* trainer.judge_now\(\) .*catch KeyboardInterrupt"
    with pytest.warns(UserWarning, match=how) as caught, pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert [each.filename for each in caught if "interrupted" in str(each.message)] == [__file__]
    assert trainer.verdict is None
    assert trainer.judge_now().epoch == 4
    _, given, true = make_blobs()
    assert min(score(trainer.verdict.keep, given, true)) > 0.9


def test_who_ends_before_e_is_told(tmp_path: Path) -> None:
    late = {"num_classes": K, "epochs": 100, "prune_after": 100}
    with pytest.warns(UserWarning, match="training ended before the verdict"):
        make_trainer(tmp_path, denoise=late, num_train_epochs=1).train()


@pytest.mark.parametrize("find", [False, True])  # the latter through accelerate
def test_who_hardly_learns_is_told_where_train_was_called(tmp_path: Path, find: bool) -> None:
    with pytest.warns(UserWarning, match="the network has hardly learnt") as caught:
        make_trainer(tmp_path, learning_rate=1e-6, auto_find_batch_size=find).train()
    told = [warning for warning in caught if "hardly learnt" in str(warning.message)]
    assert len(told) == 1 and told[0].filename == __file__


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        points, given, _ = make_blobs()
        return iter([Dicts(points, given)[index] for index in range(N)])


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    few = make_trainer(tmp_path, denoise={"num_classes": K - 1})
    with pytest.raises(InputError, match=r"logits must be \(batch, 4\)"):
        few.train()
    args = few.args
    points, given, _ = make_blobs()
    unsaid = DenoisingTrainer(model=Blobs(), args=args, train_dataset=Dicts(points, given))
    with pytest.raises(InputError, match="the model has no config.num_labels: pass denoise="):
        unsaid.train()
    stream = make_trainer(tmp_path, max_steps=10)
    stream.train_dataset = Stream()
    with pytest.raises(InputError, match="an iterable dataset has no indices"):
        stream.train()
    plain = make_trainer(tmp_path, kind=transformers.Trainer, save_strategy="epoch")
    plain.args.num_train_epochs = 1
    plain.train()
    with pytest.raises(InputError, match="oddly_0.pt is missing: .* saved by another Trainer"):
        make_trainer(tmp_path).train(resume_from_checkpoint=True)


@pytest.mark.slow
def test_two_processes_come_to_the_verdict_of_one(whole: Any, tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    script = str(ROOT / "tests/integrations/ranks.py")
    done = subprocess.run(
        [sys.executable, *launcher, script, "huggingface", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for kind in ("verdict", "resumed"):
        for key, value in first[kind].items():
            if isinstance(value, Tensor):
                assert torch.equal(value, second[kind][key]), key
        assert torch.equal(first[kind]["keep"], whole.verdict.keep)
        assert torch.equal(first[kind]["labels"].long(), make_blobs()[1])
    torch.testing.assert_close(first["resumed"]["scores"], first["verdict"]["scores"])
    assert first["steps"] == second["steps"] == EPOCHS * N // BATCH
