"""All settings of a run; saved as the run's config.json."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from oddly.data.base import Recipe
from oddly.data.noise import NOISES
from oddly.engine.schedule import SCHEDULES, shortest_cycle
from oddly.errors import InputError, unknown_name
from oddly.methods import is_setting, settings_of


@dataclass(frozen=True)
class RunConfig:
    """One training run. `None` means: chosen for the data (its recipe) or the device."""

    data: str
    """A dataset name, an image folder, or a CSV/Parquet table."""
    data_dir: str | None = None
    """Folder that holds the official datasets."""
    labels: str | None = None
    """A table of id and label; replaces the given labels of these ids."""
    image_size: int = 32
    """Side in pixels to resize image files to."""
    download: bool = False
    """Download an official dataset if it is missing."""
    skip_unreadable: bool = False
    """Leave out unreadable images instead of stopping."""
    pool_splits: bool = False
    """Train on train, val and test together, to judge every label."""
    flip: bool | None = None
    """Mirror training images at random; None: depends on the data (image files: yes)."""
    cutout: int = 0
    """Side in pixels of a square to blank at random in each training image; 0: none."""
    reflect: bool = False
    """Pad shifted training images with their mirror image instead of black."""
    mirror_test: bool = False
    """Test with the mean logits of each image and its mirror image."""
    noise: float = 0.0
    """Share of training labels to corrupt, 0..1."""
    noise_kind: str = "uniform"
    """How labels are corrupted."""
    trusted: int | str | None = None
    """For methods that need trusted labels: number to hold out, or a table of trusted ids."""
    hold_out: float = 0.0
    """Share of examples to test on, with their given labels; for data without a test set."""

    method: str = "odd"
    """Name of the training method."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The method's own settings, by name."""

    model: str | None = None
    """wrn-D-K, resnet8, resnet9, resnet18, resnet20, whitened or a timm name."""
    backbone: str | None = None
    """A timm network: frozen, with `model` trained on its features; or fine-tuned."""
    weights: str | None = None
    """Weights of the backbone, or of the model: packaged, pretrained or a file; None: new ones."""
    fine_tune: bool = False
    """Train the whole backbone instead of a model on its features."""
    dropout: float = 0.0
    """Dropout rate, if the network has dropout."""

    epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    """Peak learning rate."""
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float | None = None
    schedule: str = "cosine"
    """cosine, step (÷10 at 1/2 and 3/4 of the epochs) or constant."""
    warmup: float = 0.0
    """Epochs over which the learning rate rises linearly from 0."""
    restart: int = 0
    """Restart the schedule, including warm-up, after this many epochs; 0: never."""

    device: str = "auto"
    """auto, cpu, cuda or mps."""
    precision: str = "auto"
    """fp32 or bf16 (autocast); auto: bf16 on a GPU that has it."""
    compile: bool = False
    """torch.compile with CUDA graphs: saves minutes on long GPU runs, costs one at the start."""
    workers: int = 2
    """Processes that decode images that do not fit in memory."""
    test_every: int = 1
    """Test every N epochs; E and the last epoch are always tested."""

    noise_seed: int = 0
    """Seed for the label noise."""
    init_seed: int = 0
    """Seed for the initial weights."""
    order_seed: int = 0
    """Seed for data order, augmentation, dropout and counterfactual draws."""
    tensorboard: bool = False
    """Also write a TensorBoard log to the run folder."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_type(each.name, getattr(self, each.name), str(each.type))
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise unknown_name(name.replace("_", " "), getattr(self, name), known)
        for name, (low, high) in RANGES.items():
            _check_range(name, getattr(self, name), low, high)
        _check_range("warmup", self.warmup, 0, self.epochs)
        if self.epochs and self.warmup > (most := shortest_cycle(self.epochs, self.restart)):
            raise InputError(
                f"warmup {self.warmup:g} is too long: with restart {self.restart} of {self.epochs}"
                f" epochs the shorter cycle has {most:g}; use a warmup within 0..{most:g}"
            )
        if self.backbone is None and self.fine_tune:
            raise InputError("fine_tune needs a backbone")
        if self.backbone is None and self.weights == "packaged":
            raise InputError(
                "weights packaged needs a backbone: add --backbone tf_efficientnet_lite0"
            )
        of_images = {
            "cutout": self.cutout,
            "reflect": self.reflect,
            "mirror_test": self.mirror_test,
            "noise instance": self.noise and self.noise_kind == "instance",
        }
        for name in (name for name, asked in of_images.items() if asked and self.frozen):
            # before minutes of embedding
            raise InputError(f"{name} needs images and cannot be used with a frozen backbone")

    @property
    def frozen(self) -> bool:
        """Whether a model trains on the features of a backbone that itself stays as it is."""
        return bool(self.backbone) and not self.fine_tune

    def with_recipe(self, recipe: Recipe) -> RunConfig:
        """The same run with `None` replaced by the values of the data's recipe."""
        gaps = {k: v for k, v in asdict(recipe).items() if getattr(self, k) is None}
        return replace(self, **gaps)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """From config.json; entries that are not settings (the format number) are ignored."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in known})

    @classmethod
    def from_options(cls, data: str, options: Mapping[str, Any]) -> RunConfig:
        """From keyword options: a field's name sets it, any other is a setting of the method.

        `seed` sets those of the three seeds that are not given by name.
        """
        chosen, settings = sort_options(options)
        return cls(data, settings=settings, **chosen)


def sort_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a config among the options, and the method's settings.

    A name that is neither raises an error that suggests the most similar one of both.
    """
    given = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items()}
    seed, settings = given.pop("seed", None), given.pop("settings", None)
    if seed is not None:
        _check_type("seed", seed, "int")
        _check_range("seed", seed, *SEED_RANGE)
        given = {**dict.fromkeys(SEEDS, seed), **given}
    known = {f.name for f in fields(RunConfig)}
    rest = {k: v for k, v in given.items() if k not in known}
    if unknown := [name for name in rest if not is_setting(name)]:
        method = given.get("method", RunConfig.method)
        raise unknown_name("option", unknown[0], [*known, *OF_A_CALL, *settings_of(method)])
    return {k: v for k, v in given.items() if k in known}, {**(settings or {}), **rest}


OF_A_CALL = ("seed", "settings", "preset", "out", "resume", "overwrite", "watcher")
"""Other names that `oddly.train` takes."""
SEED_RANGE = (0, 2**32 - 1)
SEEDS = ("noise_seed", "init_seed", "order_seed")
MACHINE = ("device", "data_dir", "download", "workers", "tensorboard")
"""Fields that change where a run happens, not what it learns; published results omit them."""
CHOICES = {
    "noise_kind": tuple(NOISES),
    "schedule": SCHEDULES,
    "device": ("auto", "cpu", "cuda", "mps"),
    "precision": ("auto", "fp32", "bf16"),
}
RANGES: dict[str, tuple[float, float]] = {
    "noise": (0, 1),
    "hold_out": (0, 0.5),
    "momentum": (0, 1),
    "image_size": (4, 4096),
    "cutout": (0, 4096),
    "workers": (0, 1024),
    "test_every": (1, math.inf),
    "epochs": (1, math.inf),
    "restart": (0, math.inf),
    "batch_size": (1, math.inf),
    "learning_rate": (0, math.inf),
    "weight_decay": (0, math.inf),
    **dict.fromkeys(SEEDS, SEED_RANGE),
}
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}


def _check_type(name: str, value: Any, written: str) -> None:
    """Refuse values of the wrong type now; without this, they would fail much later."""
    kinds = [kind for kind in written.split(" | ") if kind in TYPES]
    fits = any(isinstance(value, TYPES[kind]) for kind in kinds)
    if kinds and (not fits or (isinstance(value, bool) and "bool" not in kinds)):
        raise InputError(f"{name} must be {written.replace(' | None', '')}, got {value!r}")


def _check_range(name: str, value: float | None, low: float, high: float | None) -> None:
    if value is None:
        return
    most = math.inf if high is None else high
    if not low <= value <= most or math.isinf(value):  # NaN fails the first
        least = f"finite and at least {low:g}"
        limits = least if math.isinf(most) else f"within {low:g}..{most:.10g}"
        raise InputError(f"{name} must be {limits}, got {value:g}")
