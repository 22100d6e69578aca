"""Every method by name; to add one, write its file and list it here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from oddly.errors import InputError, unknown_name
from oddly.methods.aum import AUM
from oddly.methods.base import Batch, Context, Method, Stage, StepOutput, Trusted
from oddly.methods.cleannet import CleanNet
from oddly.methods.co_teaching import CoTeaching
from oddly.methods.confident_learning import ConfidentLearning
from oddly.methods.curriculum import Curriculum
from oddly.methods.divide_mix import DivideMix
from oddly.methods.dmi import DMI
from oddly.methods.dropout import Dropout
from oddly.methods.elr import ELR
from oddly.methods.erm import ERM
from oddly.methods.gce import GCE, TruncatedGCE
from oddly.methods.joint_opt import JointOpt
from oddly.methods.judgement import Judgement
from oddly.methods.lccn import LCCN
from oddly.methods.loss_correction import LossCorrection, TrustedLossCorrection
from oddly.methods.luo import Luo
from oddly.methods.mentornet import MentorNet
from oddly.methods.mentornet_dd import LearntMentorNet
from oddly.methods.mixup import Mixup
from oddly.methods.odd import ODD, PAPER_RULE, ODDMixup
from oddly.methods.ren import Ren
from oddly.methods.sop import SOP

METHODS: dict[str, type[Method]] = {
    "erm": ERM,
    "mixup": Mixup,
    "odd": ODD,
    "odd_mixup": ODDMixup,
    "gce": GCE,
    "gce_truncated": TruncatedGCE,
    "luo": Luo,
    "ren": Ren,
    "mentornet": MentorNet,
    "mentornet_dd": LearntMentorNet,
    "loss_correction": LossCorrection,
    "loss_correction_trusted": TrustedLossCorrection,
    "lccn": LCCN,
    "joint_opt": JointOpt,
    "dmi": DMI,
    "dropout": Dropout,
    "cleannet": CleanNet,
    "curriculum": Curriculum,
    "aum": AUM,
    "elr": ELR,
    "co_teaching": CoTeaching,
    "confident_learning": ConfidentLearning,
    "divide_mix": DivideMix,
    "sop": SOP,
}

PRESETS: dict[str, Mapping[str, Any]] = {"paper": PAPER_RULE}


def settings_of(name: str) -> dict[str, str]:
    """The settings a method takes, each with its type as written (`int`, `float | None`, …)."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    kinds = ((field.name, _write(field.type)) for field in fields(METHODS[name]))
    return {name: kind for name, kind in kinds if kind.split(" | ")[0] in PARSERS}


def _write(kind: Any) -> str:
    """An annotation as text, also from a module without `from __future__ import annotations`."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def is_setting(name: str) -> bool:
    """Whether any method has a setting of that name."""
    return any(name in settings_of(method) for method in METHODS)


def read_settings(name: str, method: Method) -> dict[str, Any]:
    """All settings of a method with their values, given or default."""
    return {setting: getattr(method, setting) for setting in settings_of(name)}


def build_method(name: str, settings: Mapping[str, Any]) -> tuple[Method, list[str]]:
    """The method with its settings, and a note for each setting that only other methods have."""
    known = settings_of(name)
    taken: dict[str, Any] = {}
    notes = []
    for setting, value in settings.items():
        if setting in known:
            taken[setting] = _parse(setting, value, known[setting])
        elif is_setting(setting):
            notes.append(f"ignored setting '{setting}': {name} has no such setting")
        else:  # suggest only settings that this method has
            raise unknown_name(f"setting of {name}", setting, known)
    method = METHODS[name](**taken)
    _check_numbers(name, method)
    return method, notes


def _check_numbers(name: str, method: Method) -> None:
    """Refuse values outside the method's `ranges`, and NaN and infinity in any setting."""
    for setting, value in read_settings(name, method).items():
        if not isinstance(value, int | float):
            continue
        low, high = method.ranges.get(setting, (-math.inf, math.inf))
        if not low <= value <= high or math.isinf(value):
            limits = f"at least {low:g}" if math.isfinite(low) else "finite"
            limits = f"within {low:g}..{high:g}" if math.isfinite(high) else limits
            raise InputError(f"{name}'s {setting} must be {limits}, got {value:g}")


def _parse(setting: str, value: Any, kind: str) -> Any:
    """A setting's value, from the text of `--set name=value` or as given from Python."""
    options = kind.split(" | ")
    if value is None or (value == "none" and "None" in options):
        if "None" in options:
            return None
        raise InputError(f"setting '{setting}' needs a value ({kind})")
    try:
        return PARSERS[options[0]](value)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"setting '{setting}' must be {options[0]}, got '{value}'") from None


def _parse_bool(value: Any) -> bool:
    """From the usual words; `KeyError` for any other."""
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
        str(value).lower()
    ]


PARSERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda value: int(str(value)),  # int(2.5) would silently be 2
    "float": float,
    "str": str,
    "bool": _parse_bool,
}
"""By the type in the annotation: turns the text of an option into a value."""

__all__ = [
    "METHODS",
    "PARSERS",
    "PRESETS",
    "Batch",
    "Context",
    "Judgement",
    "Method",
    "Stage",
    "StepOutput",
    "Trusted",
    "build_method",
    "is_setting",
    "read_settings",
    "settings_of",
]
