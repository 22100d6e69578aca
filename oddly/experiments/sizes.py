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
    """Of every run: network, epochs, batch, schedule."""
    prune_after: int
    """E of the paper's rule."""
    default_settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the row "our default"."""
    shrink: Callable[[LabelledData], LabelledData] | None = None
    make: Callable[[Path], None] | None = None
    """Makes the data itself below a folder, in the official layout."""
    examples: int = 50_000
    """Of its training set, for plans."""
    compile: bool = False
    """Whether its runs are long enough for torch.compile to pay on a GPU."""
    cost: str = ""
    """What one training takes, in words; empty: what the experiment says of the paper's setting."""

    def config(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """A run of this size; `options` win, what is no field is a setting of the method."""
        return RunConfig.from_options(data, {**self.options, "seed": seed, **options})

    def paper(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """The same by the paper's rule; `prune_after` and `percentile` may be given."""
        rule = {**PRESETS["paper"], "prune_after": self.prune_after, "method": "odd"}
        return self.config(data, seed, **{**rule, **options})

    def trunk(self, data: str, seed: int = 0, **options: Any) -> RunConfig:
        """Plain training with the losses kept: ODD that prunes when it is over.

        Its weights are ERM's, so its accuracy is ERM's; any E and p can be taken up from it.
        """
        late = {"prune_after": self.epochs, "percentile": 100.0}
        return self.paper(data, seed, **{**options, **late, "method": "odd"})

    @property
    def epochs(self) -> int:
        return int(self.options["epochs"])

    def at(self, epoch: int) -> int:
        """The epoch that stands for epoch `epoch` of the paper's 200."""
        if epoch == PAPER_PRUNE_AFTER:
            return self.prune_after
        return max(1, round(epoch / PAPER_EPOCHS * self.epochs))

    @property
    def looks(self) -> tuple[int, ...]:
        """Epochs at which every trunk's losses are looked at, so that all figures can share it."""
        return tuple(sorted({self.at(epoch) for epoch in LOOKS}))

    def changed(self, options: Mapping[str, str]) -> Size:
        """The same with some options replaced: other runs, kept apart from these.

        A field of a run's config holds for every run, `prune_after` for the paper's rule (and
        ours where it is fixed), any other setting of the method for our default alone.
        """
        if cells_own := sorted(options.keys() & CELLS_OWN):
            raise InputError(f"--with cannot change {cells_own[0]}: each cell sets its own")
        chosen, settings = sort_options({k: _typed(k, text) for k, text in options.items()})
        defaults = {**self.default_settings, **settings}
        prune_after = settings.get("prune_after", self.prune_after)
        if "prune_after" not in self.default_settings:
            defaults.pop("prune_after", None)
        merged = {**self.options, **chosen}
        if int(prune_after) > int(merged["epochs"]):  # told before a trunk is trained
            raise InputError(
                f"E = {prune_after} is beyond {merged['epochs']} epochs; add --with prune_after=N"
            )
        if "model" in chosen and "dropout" not in chosen:
            merged.pop("dropout", None)  # of this size's own network; others may have none
        return replace(
            self, options=merged, prune_after=int(prune_after), default_settings=defaults
        )

    @property
    def decodes_files(self) -> bool:
        """Whether its data are image files; CIFAR lies in memory."""
        return "image_size" in self.options

    def load(self, data: str, data_dir: Path | None) -> LabelledData | None:
        """The data as this size has it; None where the engine decodes files as a run asks."""
        if self.decodes_files:
            return None
        loaded = load_data(data, DataOptions(data_dir=data_dir))
        return self.shrink(loaded) if self.shrink else loaded


def _typed(name: str, text: str) -> Any:
    """The text of NAME=VALUE as the config's field of that name takes it."""
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
# schedule begins anew on what was kept. Not compiled: that alone would take most of the minute.
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
