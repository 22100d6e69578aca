"""What others do to a Trainer, and what used to go wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from oddly.errors import InputError
from tests.integrations.toy import BATCH, K, N, check, make_blobs, make_network

transformers = pytest.importorskip("transformers")

from oddly.integrations.huggingface import DenoisingTrainer  # noqa: E402
from tests.integrations.trainers import make_arguments, make_trainer  # noqa: E402


class Items(Dataset[Any]):
    """Blobs, each made into a mapping."""

    def __init__(self, make: Any, num_examples: int = N, seed: int = 0) -> None:
        self.points, self.given, _ = make_blobs(num_examples, seed)
        self.make = make

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, index: int) -> Any:
        return self.make(self.points[index], int(self.given[index]), index)


class Labels(nn.Module):
    """A label called `labels`, as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.net = make_network()

    def forward(self, inputs: Tensor, labels: Tensor, index: Any = None) -> dict[str, Tensor]:
        logits = self.net(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Y(Labels):
    """A label called `y`."""

    def forward(self, inputs: Tensor, y: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        return super().forward(inputs, y)


def renamed(x: Tensor, y: int, _: int) -> dict[str, Tensor]:
    """The default collator makes `labels` of these."""
    return {"inputs": x, "label_ids": torch.tensor(y)}


@pytest.mark.parametrize(
    ("model", "make", "denoise", "arguments"),
    [
        (Labels, lambda x, y, i: {"inputs": x, "label": i % K, "labels": y}, {}, {}),
        (Labels, lambda x, y, _: {"inputs": x, "label": y}, {}, {}),
        (Labels, renamed, {"label_key": "label_ids"}, {}),
        (Y, lambda x, y, _: {"inputs": x, "y": y}, {"label_key": "y"}, {}),
        (Y, lambda x, y, _: {"inputs": x, "y": y}, {}, {"label_names": ["y"]}),
    ],
    ids=["both", "renamed", "label_ids", "label_key", "label_names"],
)
def test_the_label_that_is_trained_is_the_one_planted_and_observed(
    tmp_path: Path, model: Any, make: Any, denoise: Any, arguments: Any
) -> None:
    args = make_arguments(tmp_path, **arguments)
    trainer = DenoisingTrainer(
        model=model(), args=args, train_dataset=Items(make), denoise={"num_classes": K, **denoise}
    )
    trainer.train()
    check(trainer.verdict)


def test_an_index_of_ones_own_is_left_alone_in_training_and_evaluation(tmp_path: Path) -> None:
    seen = []

    class Mine(Labels):
        def forward(self, inputs: Tensor, labels: Tensor, index: Any = None) -> dict[str, Tensor]:
            seen.append(index)
            return super().forward(inputs, labels)

    def make(x: Tensor, y: int, index: int) -> dict[str, Any]:
        return {"inputs": x, "labels": y, "index": 1000 + index}

    trainer = DenoisingTrainer(
        model=Mine(),
        args=make_arguments(tmp_path, eval_strategy="epoch"),
        train_dataset=Items(make),
        eval_dataset=Items(make, 200, 1),
        denoise={"num_classes": K},
    )
    trainer.train()
    check(trainer.verdict)
    assert all((index >= 1000).all() for index in seen)


class OwnLoss(DenoisingTrainer):
    def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
        assert sorted(inputs) == ["inputs", "labels"]
        return model(**inputs)["loss"]


class OwnStep(DenoisingTrainer):
    """Calls compute_loss by itself, which is enough."""

    def training_step(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
        model.train()
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        self.accelerator.backward(loss)
        return loss.detach()


class OwnLoader(DenoisingTrainer):
    def get_train_dataloader(self) -> Any:
        return DataLoader(self.train_dataset, BATCH, shuffle=True, collate_fn=self.data_collator)


class OnlyLoss(transformers.Trainer):  # type: ignore[misc,name-defined]
    def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
        return model(**inputs)["loss"]


class Denoised(DenoisingTrainer, OnlyLoss):  # type: ignore[misc]
    pass


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OwnLoss, r"compute_loss of OwnLoss does not call .*\(DenoisingTrainer, OwnLoss\)"),
        (OwnLoader, "get_train_dataloader of OwnLoader does not call DenoisingTrainer's"),
        (Denoised, r"compute_loss must return \(loss, outputs\) with return_outputs=True"),
    ],
)
def test_methods_that_leave_ours_out(tmp_path: Path, kind: Any, message: str) -> None:
    trainer = make_trainer(tmp_path, kind=kind)
    with pytest.raises(InputError, match=message):
        trainer.train()
    assert trainer.state.global_step <= 1


def test_a_step_of_ones_own(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, kind=OwnStep)
    trainer.train()
    check(trainer.verdict)


def test_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown option 'percentil'"):
        make_trainer(tmp_path, denoise={"percentil": 10})
    trainer = make_trainer(tmp_path)
    trainer.data_collator = lambda items: [len(items)]
    with pytest.raises(InputError, match="the data_collator must return a mapping, got list"):
        trainer.train()


def test_what_we_add_keeps_out_of_the_way() -> None:
    """A class that others derive from: besides Trainer's own names only two are public."""
    added = {name for name in vars(DenoisingTrainer) if name not in dir(transformers.Trainer)}
    assert {name for name in added if not name.startswith("_")} == {"verdict", "judge_now"}
