"""The paper's setting and two smaller ones: one GPU for a minute, two CPU cores for 20 s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from oddly.data import load_data
from oddly.data.base import Augment, DataOptions, LabelledData, Split
from oddly.engine.config import RunConfig, sort_options
from oddly.errors import InputError
from oddly.methods import PARSERS, PRESETS

PAPER_EPOCHS, PAPER_PRUNE_AFTER = 200, 75
LOOKS = (10, 25, 30, 50, 75, 100)
CELLS_OWN = {"data", "method", "noise", "noise_kind", "preset", "seed", "settings"}


@dataclass(frozen=True)
class Size:
    """How large the same experiment is."""

    name: str
    options: Mapping[str, Any]
    """Options of every run: network, epochs, batch size, schedule."""
    prune_after: int
    """E of the paper's rule."""
    default_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the row "our default"."""
    shrink: Callable[[LabelledData], LabelledData] | None = None
    make: Callable[[Path], None] | None = None
    """Generates data below a folder, in the official layout."""
    examples: int = 50_000
    """Size of the training set, for estimates."""
    compile: bool = False
    """Whether runs are long enough for torch.compile to pay off on a GPU."""
    cost: str = ""
    """Cost of one training, in words; empty: use the experiment's, for the paper's setting."""

    def config(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """A run of this size; `options` win. Options that are not fields are method settings."""
        return RunConfig.from_options(data, {**self.options, "seed": seed, **options})

    def paper(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """The same with the paper's rule; `prune_after` and `percentile` can be changed."""
        rule = {**PRESETS["paper"], "prune_after": self.prune_after, "method": "odd"}
        return self.config(data, seed, **{**rule, **options})

    def trunk(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """Plain training that stores losses: ODD that prunes only after the last epoch.

        Its weights are ERM's, so its accuracy is ERM's. Runs with any E and p can fork from it.
        """
        late = {"prune_after": self.epochs, "percentile": 100.0}
        return self.paper(data, seed, **{**options, **late, "method": "odd"})

    @property
    def epochs(self) -> int:
        return int(self.options["epochs"])

    def at(self, epoch: int) -> int:
        """The epoch that corresponds to epoch `epoch` of the paper's 200."""
        if epoch == PAPER_PRUNE_AFTER:
            return self.prune_after
        return max(1, round(epoch / PAPER_EPOCHS * self.epochs))

    @property
    def looks(self) -> tuple[int, ...]:
        """Epochs at which to look at every trunk's losses, so that all figures can share it."""
        return tuple(sorted({self.at(epoch) for epoch in LOOKS}))

    def changed(self, options: Mapping[str, str]) -> Size:
        """The same with some options replaced; these runs are stored separately.

        Fields of a run's config apply to every run, `prune_after` to the paper's rule (and to ours
        if E is fixed there), and any other setting of the method only to our default.
        """
        if cells_own := sorted(options.keys() & CELLS_OWN):
            raise InputError(f"--with cannot change {cells_own[0]}: each cell sets its own")
        chosen, settings = sort_options({k: _typed(k, text) for k, text in options.items()})
        defaults = {**self.default_settings, **settings}
        prune_after = settings.get("prune_after", self.prune_after)
        if "prune_after" not in self.default_settings:
            defaults.pop("prune_after", None)
        merged = {**self.options, **chosen}
        if int(prune_after) > int(merged["epochs"]):  # fail before a trunk is trained
            raise InputError(
                f"E = {prune_after} is beyond {merged['epochs']} epochs; add --with prune_after=N"
            )
        if "model" in chosen and "dropout" not in chosen:
            merged.pop("dropout", None)  # it is for this size's own network; others may have none
        return replace(
            self, options=merged, prune_after=int(prune_after), default_settings=defaults
        )

    @property
    def decodes_files(self) -> bool:
        """Whether the data are image files; CIFAR is in memory."""
        return "image_size" in self.options

    def load(self, data: str, data_dir: Path | None) -> LabelledData | None:
        """The data of this size; None if the engine decodes files as each run asks."""
        if self.decodes_files:
            return None
        loaded = load_data(data, DataOptions(data_dir=data_dir))
        return self.shrink(loaded) if self.shrink else loaded


def _typed(name: str, text: str) -> Any:
    """The value in NAME=VALUE, with the type of the config's field of that name."""
    kinds = {each.name: str(each.type).split(" | ")[0] for each in fields(RunConfig)}
    kind = "int" if name == "prune_after" else kinds.get(name, "str")
    try:
        return PARSERS[kind](text)
    except (KeyError, ValueError):
        raise InputError(f"{name} must be {kind}, got '{text}'") from None


SMALL_TRAIN, SMALL_TEST = 1_000, 500
SECONDS = "seconds of two CPU cores each"


def shrink_images(data: LabelledData) -> LabelledData:
    """The first images at half their side, un-augmented: a small net then memorises in time."""
    assert data.test is not None and data.true_labels is not None
    side = data.image_shape[1] // 2
    return replace(
        data,
        train=_first(data.train, SMALL_TRAIN),
        test=_first(data.test, SMALL_TEST),
        true_labels=data.true_labels[:SMALL_TRAIN],
        image_shape=(3, side, side),
        augment=Augment(),
    )


def _first(split: Split, number: int) -> Split:
    assert isinstance(split.images, Tensor)
    images = avg_pool2d(split.images[:number].float(), 2).round().to(torch.uint8)
    return Split(images, split.labels[:number], split.ids[:number])


FULL = Size(
    "full",
    {
        "model": "wrn-28-10",
        "epochs": PAPER_EPOCHS,
        "batch_size": 128,
        "learning_rate": 0.1,
        "weight_decay": 5e-4,
        "dropout": 0.3,  # left open by the paper; without it CIFAR-100 is memorised before E
        "test_every": 5,  # a test costs a tenth of an epoch over the 30,000 that are kept
    },
    prune_after=PAPER_PRUNE_AFTER,
    compile=True,
)
# Ours: the first 14 epochs anneal to a small rate, so that wrong labels stand out; then the
# schedule restarts on the kept examples. Not compiled, which would take most of the minute.
FAST = Size(
    "fast",
    {
        "model": "resnet9",
        "epochs": 50,
        "batch_size": 512,
        "learning_rate": 0.4,
        "weight_decay": 5e-4,
        "warmup": 2.0,
        "restart": 14,
    },
    prune_after=14,
    default_settings={"prune_after": 14},
    cost="up to about a minute of one GPU each",
)
# Ours too: what a row of table 1 does with a whole minute of one GPU.
MINUTE = {
    "model": "whitened",
    "warmup": 4.0,
    "cutout": 8,
    "mirror_test": True,
    "test_every": 10,
}
SMALL = Size(
    "small",
    {
        "model": "resnet8",
        "epochs": 16,
        "batch_size": 64,
        "learning_rate": 0.1,
        "weight_decay": 5e-4,
    },
    prune_after=6,
    shrink=shrink_images,
    examples=SMALL_TRAIN,
    cost=SECONDS,
)
SIZES = {size.name: size for size in (FULL, FAST, SMALL)}
