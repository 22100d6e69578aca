"""A Hugging Face script that finds wrong labels while it trains: the lines marked `# oddly`.

python examples/huggingface_images.py            # digits, under a minute on a laptop CPU
"""

import torch
from sklearn.datasets import load_digits
from torch.utils.data import Dataset
from transformers import ConvNextConfig, ConvNextForImageClassification, TrainingArguments

from oddly.integrations.huggingface import DenoisingTrainer  # oddly


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixel_values": self.images[index], "labels": int(self.labels[index])}


torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.target))
images = torch.tensor(digits.images, dtype=torch.float32)[order, None] / 16
labels, size = torch.tensor(digits.target)[order], 1437
given = labels.clone()  # four training labels in ten are replaced by a random one
replaced = (torch.rand(len(labels)) < 0.4) & (torch.arange(len(labels)) < size)
given[replaced] = torch.randint(10, (int(replaced.sum()),))

shape = {"num_channels": 1, "image_size": 8, "patch_size": 2, "num_stages": 2}
config = ConvNextConfig(**shape, hidden_sizes=[32, 64], depths=[1, 1], num_labels=10)
trainer = DenoisingTrainer(  # oddly
    model=ConvNextForImageClassification(config),
    args=TrainingArguments(
        "runs/huggingface",
        num_train_epochs=30,
        per_device_train_batch_size=64,
        learning_rate=0.01,
        lr_scheduler_type="cosine",
        save_strategy="no",
    ),
    train_dataset=Images(images[:size], given[:size]),
    eval_dataset=Images(images[size:], labels[size:]),
    compute_metrics=lambda seen: {
        "accuracy": (seen.predictions.argmax(1) == seen.label_ids).mean()
    },
)
trainer.train()

removed, wrong = ~trainer.verdict.keep, (given != labels)[:size]
precision, recall = ((removed & wrong).sum() / mask.sum() for mask in (removed, wrong))
accuracy = 100 * trainer.evaluate()["eval_accuracy"]
print(f"precision {precision:.3f}  recall {recall:.3f}  test accuracy {accuracy:.1f} %")
