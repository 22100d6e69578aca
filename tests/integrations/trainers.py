"""The model and arguments of the Hugging Face tests; processes of their own load them too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers import TrainingArguments

from oddly.integrations.huggingface import DenoisingTrainer
from tests.integrations.toy import BATCH, EPOCHS, Dicts, K, make_blobs, make_network


class Blobs(nn.Module):
    """As models of the hub: inputs and labels by name, loss and logits by name."""

    def __init__(self) -> None:
        super().__init__()
        self.net = make_network()
        self.seen: list[tuple[Tensor, Tensor]] = []

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        if self.training:
            self.seen.append((inputs, labels))
        logits = self.net(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def make_arguments(folder: Path, **options: Any) -> TrainingArguments:
    defaults = {
        "num_train_epochs": EPOCHS,
        "per_device_train_batch_size": BATCH,
        "learning_rate": 0.2,
        "optim": "sgd",
        "lr_scheduler_type": "cosine",
        "save_strategy": "no",
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    return TrainingArguments(str(folder), **{**defaults, **options})


def make_trainer(
    folder: Path, kind: type[Any] = DenoisingTrainer, denoise: Any = None, **options: Any
) -> Any:
    points, given, _ = make_blobs()
    more = {"denoise": {"num_classes": K, **(denoise or {})}}
    unseen, _, true = make_blobs(200, seed=1)
    return kind(
        model=Blobs(),
        args=make_arguments(folder, **options),
        train_dataset=Dicts(points, given),
        eval_dataset=Dicts(unseen, true),
        compute_metrics=lambda seen: {
            "accuracy": float((seen.predictions.argmax(1) == seen.label_ids).mean())
        },
        **(more if issubclass(kind, DenoisingTrainer) else {}),
    )
