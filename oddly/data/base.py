"""The common form of all datasets: images, given labels and class names; true labels apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset

from oddly.errors import InputError


@dataclass(frozen=True)
class Recipe:
    """The default training settings for a dataset."""

    model: str = "resnet18"
    epochs: int = 30
    batch_size: int = 128
    learning_rate: float = 0.1
    weight_decay: float = 5e-4


@dataclass(frozen=True)
class Augment:
    """Random changes of a training image, applied to whole batches on the training device."""

    pad: int = 0
    """Pad each side with this many pixels of zeros, then crop back at a random place."""
    flip: bool = False
    """Mirror left to right half of the time."""
    crop: int = 0
    """Side of the crop: random in training, the centre in testing; 0: the whole image."""
    area: tuple[float, float] | None = None
    """With `crop`: take this share of the area, with a random shape, and resize it to the crop."""
    cutout: int = 0
    """Side of a square at a random place to set to the mean; 0: none."""
    reflect: bool = False
    """With `pad`: pad with the mirror image instead of zeros."""


@dataclass(frozen=True)
class Split:
    """N images with one label each."""

    images: Tensor | Dataset[Tensor]
    """uint8 (N, C, H, W) in memory, or a map-style dataset that decodes one (C, H, W) at a time.

    Floating point (N, D) are features: inputs used as they are.
    """
    labels: Tensor
    """int64 (N,)"""
    ids: Sequence[str]
    """A stable name per example; for images, the path relative to the data root, with slashes."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def holds_features(self) -> bool:
        """Whether the inputs are features rather than images."""
        return isinstance(self.images, Tensor) and self.images.is_floating_point()

    def take(self, places: Tensor) -> Split:
        """These examples, in this order."""
        images, chosen = self.images, places.tolist()
        taken = images[places] if isinstance(images, Tensor) else Subset(images, chosen)
        return Split(taken, self.labels[places], [self.ids[i] for i in chosen])


@dataclass(frozen=True)
class LabelledData:
    """A dataset ready to train on. `train.labels` are the *given* labels, right or wrong."""

    name: str
    class_names: Sequence[str]
    train: Split
    test: Split | None
    true_labels: Tensor | None
    """int64 (N,) for the training split, if known; for scoring only, no method sees them."""
    image_shape: tuple[int, int, int]
    """(C, H, W) of every image once decoded; (D, 1, 1) for features."""
    mean: tuple[float, ...]
    """Per channel, on the 0..1 scale."""
    std: tuple[float, ...]
    augment: Augment = Augment()
    recipe: Recipe = Recipe()
    confused_with: Sequence[int] | None = None
    """For asymmetric noise: class k is mistaken for class confused_with[k] (k itself: never)."""
    notes: Sequence[str] = field(default_factory=tuple)
    """Lines the user should read (skipped files, classes without examples)."""
    closed: Mapping[str, str] = field(default_factory=dict)
    """Folders in the source that could not be read and are left out, with the reason."""
    unread: Sequence[str] = ()
    """Ids of images that could not be read and are left out; a table of labels may name them."""
    decided: Tensor | None = None
    """bool (N,): given labels of the training split confirmed by a person; never suspects."""
    pictures: Tensor | None = None
    """int64 (N,): number of the picture if it occurs with different labels, else -1."""

    def with_given_labels(self, labels: Tensor) -> LabelledData:
        """The same data with other given labels."""
        return replace(self, train=replace(self.train, labels=labels))

    def take(self, places: Tensor) -> LabelledData:
        """The data with only these training examples, in this order."""
        truth = None if self.true_labels is None else self.true_labels[places]
        return replace(
            self,
            train=self.train.take(places),
            true_labels=truth,
            decided=None if self.decided is None else self.decided[places],
            pictures=None if self.pictures is None else self.pictures[places],
        )

    def without(self, places: Tensor) -> LabelledData:
        """The data without these training examples."""
        stays = torch.ones(len(self.train), dtype=torch.bool)
        stays[places] = False
        return self.take(stays.nonzero().flatten())


@dataclass(frozen=True)
class DataOptions:
    """Options of the loaders; each loader uses those that concern it."""

    data_dir: Path | None = None
    """Folder that holds the official datasets (cifar-10-batches-py/ …)."""
    image_size: int = 32
    """Side of the square to resize and crop image files to."""
    download: bool = False
    """Download an official dataset if it is missing."""
    skip_unreadable: bool = False
    """Leave out unreadable images instead of stopping."""
    memory_limit: int = 2**31
    """Bytes of decoded images to hold in memory; beyond it, files are decoded each epoch."""
    pool_splits: bool = False
    """Use train, val and test together: judge every label, test on none."""
    decode: bool = True
    """False: list image files without reading them."""
    from_scratch: bool = True
    """False: the network has been pretrained on other images."""
    progress: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)
    """Called with (done, total) while image files are read."""


def find_folder(name: str, options: DataOptions) -> Path:
    """The official folder below the data directory, or the data directory if that is it."""
    root = data_directory(options)
    return root if root.name == name and root.is_dir() else root / name


def data_directory(options: DataOptions) -> Path:
    """--data-dir, by default `data` below the working directory."""
    return Path("data") if options.data_dir is None else options.data_dir


def check_labels(labels: Tensor, num_classes: int, where: str) -> None:
    """Refuse labels outside 0 … K-1, naming the first one."""
    bad = torch.nonzero((labels < 0) | (labels >= num_classes)).flatten()
    if len(bad):
        i = int(bad[0])
        raise InputError(
            f"{where}: label {int(labels[i])} of example {i} is outside 0..{num_classes - 1}"
            f" ({len(bad)} such labels)"
        )


def check_data(data: LabelledData) -> None:
    """Check data that the user put together for what our loaders guarantee."""
    for name, split in (("train", data.train), ("test", data.test)):
        if split is None:
            continue
        where = f"{data.name}, {name}"
        if split.labels.dtype != torch.int64:
            raise InputError(f"{where}: labels must be torch.int64, got {split.labels.dtype}")
        check_labels(split.labels, len(data.class_names), where)
        sizes = (len(split.images), len(split.labels), len(split.ids))  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            raise InputError(f"{where}: {sizes[0]} images, {sizes[1]} labels and {sizes[2]} ids")
        if len(set(split.ids)) < len(split):
            raise InputError(f"{where}: two examples have the same id; ids must be unique")
        _check_images(split.images, where)
    if data.true_labels is not None and len(data.true_labels) != len(data.train):
        raise InputError(
            f"{data.name}: {len(data.true_labels)} true labels for {len(data.train)} examples"
        )


def _check_images(images: Tensor | Dataset[Tensor], where: str) -> None:
    """Refuse tensors that are neither uint8 images nor rows of float features."""
    if not isinstance(images, Tensor):
        return
    shape = tuple(images.shape)
    if not (images.dtype == torch.uint8 and images.dim() == 4) and not (
        images.is_floating_point() and images.dim() == 2
    ):
        raise InputError(
            f"{where}: images must be torch.uint8 (N, C, H, W), or features as floats (N, D);"
            f" got {images.dtype} {shape}"
        )
