"""The Lightning module of the tests; apart from them, because processes of their own load it."""

from __future__ import annotations

from typing import Any

import lightning
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.integrations.toy import BATCH, EPOCHS, given_set, make_blobs, make_network

QUIET = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec"),
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`"),
]
"""Lightning's own remarks, which tests of ours would take for errors."""


class Blobs(lightning.LightningModule):
    """Notes what it is trained on: labels by epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.net = make_network()
        self.seen: dict[int, list[tuple[Any, Any]]] = {}
        self.validated = 0

    def training_step(self, batch: Any, _: int) -> Any:
        inputs, labels = batch
        logits = self.net(inputs)
        self.seen.setdefault(self.current_epoch, []).append((inputs, labels))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    def validation_step(self, batch: Any, _: int) -> None:
        inputs, labels = batch
        self.validated += 1
        self.log("accuracy", (self.net(inputs).argmax(1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self) -> Any:
        optimiser = torch.optim.SGD(self.parameters(), 0.2, momentum=0.9)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        return [optimiser], [{"scheduler": schedule, "interval": "step"}]


class Tuned(Blobs):
    """With a loader of its own, and a learning rate that a tuner may look for."""

    lr = 0.2

    def train_dataloader(self) -> Any:
        return train_loader()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), self.lr, momentum=0.9)


def make_trainer(*callbacks: Any, **options: Any) -> lightning.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    defaults = {"max_epochs": EPOCHS, "accelerator": "cpu", "enable_checkpointing": False, **quiet}
    return lightning.Trainer(callbacks=list(callbacks), **{**defaults, **options})


def train_loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(given_set(), **{"batch_size": BATCH, "shuffle": True, **options})


def unseen_loader() -> DataLoader[Any]:
    points, _, true = make_blobs(200, seed=1)
    return DataLoader(torch.utils.data.TensorDataset(points, true), 100)
