"""A Lightning script that finds wrong labels while it trains: the lines marked `# oddly`.

python examples/lightning_cifar.py                       # digits, half a minute on a CPU
python examples/lightning_cifar.py --data-dir DATA       # CIFAR-10, where its folder lies in DATA
"""

import argparse

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from oddly.integrations.lightning import Denoise  # oddly


class Classifier(L.LightningModule):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Conv2d(channels, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
        )

    def training_step(self, batch, _):
        logits, labels = self.net(batch[0]), batch[1]
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}  # oddly

    def validation_step(self, batch, _):
        self.log("accuracy", (self.net(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.trainer.max_epochs)
        return [optimizer], [schedule]


def load(data_dir: str | None):
    """Images, labels, and how many of them are for training."""
    if data_dir is None:
        digits = load_digits()
        order = torch.randperm(len(digits.target))
        images = torch.tensor(digits.images, dtype=torch.float32)[order, None] / 16
        return images, torch.tensor(digits.target)[order], 1437
    from torchvision.datasets import CIFAR10

    parts = [CIFAR10(data_dir, train=train) for train in (True, False)]
    images = torch.cat([torch.tensor(part.data) for part in parts]).permute(0, 3, 1, 2) / 255
    return images, torch.tensor(parts[0].targets + parts[1].targets), 50_000


parser = argparse.ArgumentParser()
parser.add_argument("--data-dir")
parser.add_argument("--epochs", type=int, default=30)
options = parser.parse_args()
torch.manual_seed(0)
images, labels, size = load(options.data_dir)
given = labels.clone()  # four training labels in ten are replaced by a random one
replaced = (torch.rand(len(labels)) < 0.4) & (torch.arange(len(labels)) < size)
given[replaced] = torch.randint(10, (int(replaced.sum()),))
loader = DataLoader(TensorDataset(images[:size], given[:size]), 64, shuffle=True)
unseen = DataLoader(TensorDataset(images[size:], labels[size:]), 256)

denoise = Denoise(num_classes=10)  # oddly
quiet = {"logger": False, "enable_checkpointing": False}
trainer = L.Trainer(max_epochs=options.epochs, callbacks=[denoise], **quiet)  # oddly
trainer.fit(Classifier(images.shape[1]), loader, unseen)

removed, wrong = ~denoise.verdict.keep, (given != labels)[:size]
precision, recall = ((removed & wrong).sum() / mask.sum() for mask in (removed, wrong))
accuracy = 100 * trainer.callback_metrics["accuracy"]
print(f"precision {precision:.3f}  recall {recall:.3f}  test accuracy {accuracy:.1f} %")
