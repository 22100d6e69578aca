"""Choose settings for any dataset; each comes with a reason, and each can be overridden."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from oddly.clean.survey import Survey
from oddly.core.rule import SMALLEST, Rule, usual_counterfactual
from oddly.core.sentinels.planting import how_many
from oddly.core.verdict import FEWEST_EXAMPLES
from oddly.data.files import choose_recipe
from oddly.engine.build import method_settings
from oddly.engine.config import RunConfig
from oddly.engine.embed import head_recipe
from oddly.errors import InputError
from oddly.methods import settings_of
from oddly.models.backbone import PACKAGED

TINY = 16  # pixels: smaller images show nothing that a network trained on photographs knows
SMALL = 64  # pixels: a network from scratch uses smaller images in their own size
BACKBONE_SIZE = 224  # the size it was trained on; also for images of 32 pixels (docs/clean.md)
ENOUGH = 0.75  # of the frozen network's contrast: then training from scratch finds more
TUNE_EPOCHS, TUNE_SIZE = 12, 160  # with 224, every epoch would take twice as long


@dataclass(frozen=True)
class Choice:
    """One setting, its value in words, and why."""

    name: str
    value: str
    reason: str


NETWORKS: Mapping[str, Mapping[str, str]] = {
    "frozen": {"backbone": PACKAGED},
    "scratch": {"model": "resnet8"},
}
"""The options that select each of the two networks."""


@dataclass(frozen=True)
class Tried:
    """How well two networks separated wrong labels on some of the images, by contrast."""

    images: int
    frozen: float
    scratch: float | None = None
    """None if the frozen network did so well that the other was not tried."""

    @property
    def best(self) -> str:
        tells = self.scratch is not None and self.scratch >= ENOUGH * self.frozen
        return "scratch" if tells else "frozen"

    @property
    def reason(self) -> str:
        other = "" if self.scratch is None else f", {self.scratch:.1f} from scratch"
        return f"tried on {self.images:,}: contrast {self.frozen:.1f} frozen{other}"


def choose(
    source: str, found: Survey, asked: Mapping[str, Any], device: str, tried: Tried | None = None
) -> tuple[RunConfig, list[Choice]]:
    """The config for this data, and the choices with their reasons; the user's options win.

    `asked`: fields of `RunConfig`, and the method's settings under `settings`.
    """
    kind, why = (tried.best, tried.reason) if tried else _choose_kind(found, asked)
    values: dict[str, Any] = {"pool_splits": True, **(chosen := KINDS[kind](found)), **asked}
    values["settings"] = {**chosen.get("settings", {}), **asked.get("settings", {})}
    if kind == "fine-tuned":
        values["model"] = values["backbone"]
    config = fill_weights(RunConfig(source, **values))
    return config, _explain(config, found, asked, why, device)


def _choose_kind(found: Survey, asked: Mapping[str, Any]) -> tuple[str, str]:
    """Frozen features, a fine-tuned backbone, or a network from scratch."""
    if asked.get("weights") and not asked.get("backbone") and asked["weights"] != "packaged":
        raise InputError("--weights FILE or pretrained needs a --backbone")
    if asked.get("fine_tune"):
        if asked.get("model"):
            raise InputError("--fine-tune trains a --backbone and cannot be used with --model")
        return "fine-tuned", "your choice"
    if asked.get("backbone") or asked.get("weights"):
        return "frozen", "your choice"
    if asked.get("model"):
        return "scratch", "your choice"
    if found.short_side is not None and found.short_side < TINY:
        return "scratch", f"{found.short_side} pixels are too few for a network trained on photos"
    return "frozen", "reads each image once; a small head then trains in seconds"


def _frozen(found: Survey) -> dict[str, Any]:
    recipe = asdict(head_recipe(found.images, found.classes))
    # Even below 100 images: docs/clean.md says how well they work on good features.
    settings = {"counterfactual": "sentinels"}
    return {"backbone": PACKAGED, "image_size": BACKBONE_SIZE, "settings": settings, **recipe}


def _fine_tuned(found: Survey) -> dict[str, Any]:
    return {
        "backbone": PACKAGED,
        "image_size": TUNE_SIZE,
        "epochs": TUNE_EPOCHS,
        "batch_size": max(16, min(64, found.images // 20)),
        "learning_rate": 0.01,
        "weight_decay": 1e-4,
    }


def _from_scratch(found: Survey) -> dict[str, Any]:
    side = found.short_side or 32
    size = max(8, min(32, side)) if side < SMALL else 64
    return {"image_size": size, **asdict(choose_recipe(found.images))}


KINDS = {"frozen": _frozen, "fine-tuned": _fine_tuned, "scratch": _from_scratch}


def fill_weights(config: RunConfig) -> RunConfig:
    """Choose weights for a backbone: the packaged ones if they fit, else timm's."""
    if config.backbone is None or config.weights is not None:
        return config
    return replace(config, weights="packaged" if config.backbone == PACKAGED else "pretrained")


def _explain(
    config: RunConfig, found: Survey, asked: Mapping[str, Any], why: str, device: str
) -> list[Choice]:
    """The table of settings that is printed before anything starts."""

    def reason(name: str, otherwise: str) -> str:
        return "your choice" if name in asked else otherwise

    side = "unknown size" if found.short_side is None else f"{found.short_side} px"
    network, size_reason = _describe_network(config)
    return [
        Choice("images", f"{found.images:,}, mostly {side}", "short side, from image headers"),
        Choice("classes", _describe_classes(found), _judge_balance(found)),
        Choice("network", network, why),
        Choice("image size", f"{config.image_size} px", reason("image_size", size_reason)),
        Choice(
            "epochs",
            f"{config.epochs}, batch size {config.batch_size}",
            reason("epochs", "enough steps for this network and number of images"),
        ),
        *_explain_verdict(config, found.images, asked.get("settings", {})),
        Choice("device", device, "best available" if config.device == "auto" else "your choice"),
    ]


def _explain_verdict(config: RunConfig, images: int, asked: Mapping[str, Any]) -> list[Choice]:
    """When and how wrong labels are found; `asked`: the method's settings from the user."""
    method = [Choice("method", config.method, "your choice")] if config.method != "odd" else []
    if "counterfactual" not in settings_of(config.method):
        return method
    settings = method_settings(config)
    names = ("counterfactual", "statistic", "percentile", "prune_after", "target_precision")
    told = {name: settings.get(name) for name in names}
    usual = usual_counterfactual(images, can_plant=True, statistic=told["statistic"])
    rule = Rule.choose(usual, epochs=config.epochs, **told)
    few = images < SMALLEST and told["counterfactual"] is None
    when = (f"epoch {rule.prune_after}", "your choice")
    if rule.prune_after is None:
        when = ("found during training", "when the network begins to memorise")
    elif told["prune_after"] is None:
        why = "too few images to find it" if few else "only planted labels show when"
        when = ("after 3/8 of the epochs", why)
    source = {
        "sentinels": f"from {how_many(images):,} labels replaced at random until pruning",
        "wrong_label": "from the losses of made-up wrong labels",
        "weights": "from the final layer's weights",
    }[rule.counterfactual]
    cut = "" if told["percentile"] is None else f", percentile {told['percentile']:g}"
    why = "labels that look no better are suspects; see docs/clean.md"
    if asked.get("counterfactual"):
        why = "your choice"
    elif few:
        why = f"fewer than {SMALLEST} images"
    return [*method, Choice("prune after", *when), Choice("threshold", f"{source}{cut}", why)]


def _describe_network(config: RunConfig) -> tuple[str, str]:
    """The network, and the reason for the image size."""
    if config.backbone is None:
        return f"{config.model}, from scratch", "close to the images' own size"
    name = f"{config.backbone}, {config.weights} weights"
    if config.fine_tune:
        return f"{name}, fine-tuned", "larger images would make every epoch slower"
    return f"{name}, frozen", "the size that most photo networks are trained on"


def _describe_classes(found: Survey) -> str:
    sizes = f"{found.smallest_class:,}"
    if found.largest_class != found.smallest_class:
        sizes += f" to {found.largest_class:,}"
    return f"{found.classes:,}, with {sizes} images each"


def _judge_balance(found: Survey) -> str:
    if found.smallest_class < FEWEST_EXAMPLES:
        return (
            f"classes with fewer than {FEWEST_EXAMPLES} images are kept whole: too small to judge"
        )
    if found.imbalance >= 10:
        return "unbalanced: rare classes lose more right labels, so check them with care"
    return "balanced" if found.imbalance < 3 else "somewhat unbalanced"
