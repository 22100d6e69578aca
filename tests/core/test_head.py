"""find_head on the libraries people use, on hand-written models, and its error lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from oddly.core import find_head
from oddly.errors import InputError


def name_of(model: nn.Module, layer: nn.Module) -> str:
    (name,) = (name for name, module in model.named_modules() if module is layer)
    return str(name)


TIMM = {
    "test_resnet": "fc",
    "test_vit": "head",
    "test_convnext": "head.fc",
    "test_efficientnet": "classifier",
    "deit_tiny_distilled_patch16_224": "head",
    "mobilenetv3_small_050": "classifier",
    "swin_tiny_patch4_window7_224": "head.fc",
    "levit_128s": "head.linear",
}


@pytest.mark.parametrize(("architecture", "expected"), TIMM.items())
def test_timm(architecture: str, expected: str) -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model(architecture, num_classes=7)  # not all versions can on "meta"
    assert name_of(model, find_head(model, 7)) == expected


TORCHVISION = {
    "resnet18": "fc",
    "vit_b_32": "heads.head",
    "mobilenet_v3_small": "classifier.3",
    "densenet121": "classifier",
    "swin_t": "head",
    "convnext_tiny": "classifier.2",
    "efficientnet_b0": "classifier.1",
    "vgg11": "classifier.6",
    "inception_v3": "fc",  # has AuxLogits.fc beside it
    "googlenet": "fc",  # has aux1.fc2 and aux2.fc2 beside it
}


@pytest.mark.parametrize(("architecture", "expected"), TORCHVISION.items())
def test_torchvision(architecture: str, expected: str) -> None:
    models = pytest.importorskip("torchvision").models
    options = {"init_weights": False} if architecture in ("inception_v3", "googlenet") else {}
    with torch.device("meta"):  # shapes are enough, and cost nothing
        model = models.get_model(architecture, num_classes=7, **options)
    assert name_of(model, find_head(model, 7)) == expected


ATTENTION = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "image_size": 32,
    "patch_size": 16,
}
STAGES = {"hidden_sizes": [4, 8], "depths": [1, 1]}
TRANSFORMERS = [
    ("ViT", "ForImageClassification", ATTENTION, "classifier"),
    ("DeiT", "ForImageClassificationWithTeacher", ATTENTION, "cls_classifier"),
    ("ResNet", "ForImageClassification", {"embedding_size": 4, **STAGES}, "classifier.1"),
    ("ConvNext", "ForImageClassification", {"num_stages": 2, **STAGES}, "classifier"),
]


@pytest.mark.parametrize(("family", "task", "options", "expected"), TRANSFORMERS)
def test_transformers(family: str, task: str, options: dict[str, Any], expected: str) -> None:
    with warnings.catch_warnings():  # what it warns of while importing is not ours
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers")
        config = getattr(transformers, f"{family}Config")(num_labels=7, **options)
        model = getattr(transformers, f"{family}{task}")(config)
    assert name_of(model, find_head(model, 7)) == expected


class HandWritten(nn.Module):
    """Names of its own, an auxiliary output registered last, and two linears in between."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))
        self.output = nn.Linear(4, 3)
        self.aux_output = nn.Linear(5, 3)


def test_hand_written_model_ignores_the_auxiliary_output() -> None:
    model = HandWritten()
    assert find_head(model, 3) is model.output


def test_last_of_several_in_a_sequential() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    assert find_head(model, 3) is model[2]


def test_model_that_is_a_linear_layer_itself() -> None:
    model = nn.Linear(4, 3)
    assert find_head(model, 3) is model


def test_a_usual_name_with_other_outputs_is_passed_over() -> None:
    model = nn.ModuleDict({"fc": nn.Linear(4, 8), "last": nn.Linear(8, 3)})
    assert find_head(model, 3) is model["last"]


WRAPPERS: dict[str, Callable[[nn.Module], Any]] = {
    "compile": torch.compile,
    "data_parallel": nn.DataParallel,
    "compiled_data_parallel": lambda model: torch.compile(nn.DataParallel(model)),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrapped_models(wrap: Callable[[nn.Module], Any]) -> None:
    model = HandWritten()
    with warnings.catch_warnings():  # what torch.compile imports may warn
        warnings.simplefilter("ignore")
        wrapped = wrap(model)
    assert find_head(wrapped, 3) is model.output


def test_a_wrapped_head_is_named_as_in_the_model_inside() -> None:
    model = HandWritten()
    assert find_head(nn.DataParallel(model), 3, "aux_output") is model.aux_output


def test_a_submodule_that_happens_to_be_called_module_is_no_wrapper() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.Linear(6, 4)
            self.output = nn.Linear(4, 3)

    model = Model()
    assert find_head(model, 3) is model.output


def test_named_head_wins() -> None:
    model = HandWritten()
    assert find_head(model, 3, "aux_output") is model.aux_output
    assert find_head(model, 4, "body.2") is model.body[2]


def test_wrong_number_of_classes_lists_the_linear_layers() -> None:
    with pytest.raises(InputError) as caught:
        find_head(HandWritten(), 10)
    assert str(caught.value) == (
        "no final linear layer with 10 outputs found in HandWritten (linear layers: body.0: 6→5,"
        " body.2: 5→4, output: 4→3, aux_output: 5→3); name it with head='path.to.layer'"
    )


def test_model_without_a_linear_layer() -> None:
    with pytest.raises(InputError, match="10 outputs found in Conv2d.*no linear layer"):
        find_head(nn.Conv2d(3, 10, 1), 10)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.such", r"HandWritten has no layer 'no\.such' \(linear layers: .*output: 4→3"),
        ("body", r"layer 'body' is .* not a linear layer with 3 outputs"),
        ("body.2", r"layer 'body\.2' is Linear\(.*\), not a linear layer with 3 outputs"),
    ],
)
def test_bad_names_are_told_in_one_line(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        find_head(HandWritten(), 3, name)
    assert "\n" not in str(caught.value)
