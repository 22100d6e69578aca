"""Sizes for ImageNet, WebVision and Clothing1M: the paper's, and a small generated tree."""

from __future__ import annotations

from oddly.experiments.made_trees import make_all
from oddly.experiments.sizes import SECONDS, Size

_TINY = {
    "model": "resnet8",
    "epochs": 6,
    "batch_size": 16,
    "learning_rate": 0.05,
    "weight_decay": 5e-4,
    "image_size": 16,
    "workers": 0,
    "device": "cpu",
}
TINY = Size("small", _TINY, prune_after=4, make=make_all, examples=160, cost=SECONDS)

# Left open by the paper: batch, schedule and E (3/8 of the epochs, as on CIFAR).
IMAGENET = {
    "full": Size(
        "full",
        {
            "model": "resnet152",
            "epochs": 90,
            "batch_size": 256,
            "learning_rate": 0.1,
            "weight_decay": 1e-4,
            "image_size": 224,
        },
        prune_after=34,
        examples=1_281_167,
    ),
    "small": TINY,
}
# Left open: batch, learning rate, schedule and E.
WEBVISION = {
    "full": Size(
        "full",
        {
            "model": "inception_resnet_v2",
            "epochs": 50,
            "batch_size": 256,
            "learning_rate": 0.1,
            "weight_decay": 1e-4,
            "image_size": 299,
        },
        prune_after=19,
        examples=2_439_574,
    ),
    "small": TINY,
}
# Left open: batch, weight decay and schedule.
CLOTHING1M = {
    "full": Size(
        "full",
        {
            "model": "resnet50",
            "weights": "pretrained",
            "epochs": 10,
            "batch_size": 64,
            "learning_rate": 1e-3,
            "weight_decay": 1e-3,
            "image_size": 224,
        },
        prune_after=1,
        examples=1_000_000,
    ),
    "small": TINY,
}
