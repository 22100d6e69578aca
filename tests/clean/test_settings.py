from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oddly.clean.settings import choose
from oddly.clean.survey import Survey
from oddly.errors import InputError

PHOTOS = Survey(images=2_000, classes=4, smallest_class=400, largest_class=600, short_side=480)


def reasons(found: Survey, **asked: Any) -> dict[str, tuple[str, str]]:
    _, choices = choose("photos", found, asked, "cpu")
    return {choice.name: (choice.value, choice.reason) for choice in choices}


def test_photos_get_a_frozen_backbone_with_the_packaged_weights() -> None:
    config, _ = choose("photos", PHOTOS, {}, "cpu")
    assert (config.backbone, config.weights) == ("tf_efficientnet_lite0", "packaged")
    assert (config.model, config.image_size, config.batch_size) == ("feature_head", 224, 100)
    assert config.weight_decay == 1 / 2_000 and config.pool_splits and not config.fine_tune


def test_tiny_images_get_a_network_from_scratch_at_their_own_size() -> None:
    config, _ = choose("digits", replace(PHOTOS, short_side=8), {}, "cpu")
    assert (config.backbone, config.model, config.image_size) == (None, "resnet8", 8)


def test_what_is_asked_for_wins_and_the_table_says_so() -> None:
    asked = {"image_size": 96, "epochs": 3, "settings": {"prune_after": 2, "percentile": 9.0}}
    config, _ = choose("photos", PHOTOS, asked, "cpu")
    assert (config.image_size, config.epochs) == (96, 3)
    table = reasons(PHOTOS, **asked)
    assert table["image size"] == ("96 px", "your choice")
    assert table["epochs"] == ("3, batch size 100", "your choice")
    assert table["prune after"] == ("epoch 2", "your choice")
    assert "percentile 9" in table["threshold"][0]


def test_a_model_by_name_is_trained_from_scratch() -> None:
    config, _ = choose("photos", PHOTOS, {"model": "resnet18"}, "cpu")
    assert (config.backbone, config.model, config.image_size) == (None, "resnet18", 64)


def test_fine_tuning_names_the_backbone_as_the_model() -> None:
    config, _ = choose("photos", PHOTOS, {"fine_tune": True}, "cpu")
    assert config.model == config.backbone == "tf_efficientnet_lite0" and config.fine_tune


def test_another_backbone_takes_pretrained_weights() -> None:
    config, _ = choose("photos", PHOTOS, {"backbone": "resnet18"}, "cpu")
    assert (config.weights, config.model) == ("pretrained", "feature_head")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (PHOTOS, "balanced"),
        (replace(PHOTOS, smallest_class=20, largest_class=1_000), "rare classes lose more"),
        (replace(PHOTOS, smallest_class=1), "kept whole"),
    ],
)
def test_the_table_speaks_of_imbalance(found: Survey, words: str) -> None:
    assert words in reasons(found)["classes"][1]


def test_few_images_leave_nothing_to_plant() -> None:
    few = replace(PHOTOS, images=99, short_side=8)
    made_up = "from the losses of made-up wrong labels"
    assert reasons(few)["threshold"] == (made_up, "fewer than 100 images")
    assert reasons(few)["prune after"][0] == "after 3/8 of the epochs"
    few = replace(PHOTOS, images=99)  # but for a frozen backbone
    assert reasons(few)["threshold"][0] == "from 9 labels replaced at random until pruning"
    assert reasons(few)["prune after"][0] == "found during training"


@pytest.mark.parametrize(
    ("counterfactual", "source"),
    [("weights", "final layer's weights"), ("wrong_label", "losses of made-up wrong labels")],
)
def test_another_counterfactual_is_what_the_table_tells(counterfactual: str, source: str) -> None:
    table = reasons(PHOTOS, settings={"counterfactual": counterfactual})
    assert table["threshold"][0].startswith(f"from the {source}")
    assert table["threshold"][1] == "your choice"
    assert table["prune after"][0] == "after 3/8 of the epochs"
    assert reasons(PHOTOS)["threshold"][1] != "your choice"


def test_another_method_has_no_threshold_of_ours() -> None:
    table = reasons(PHOTOS, method="aum")
    assert table["method"] == ("aum", "your choice")
    assert not {"threshold", "prune after"} & set(table)
    assert {"method", "threshold", "prune after"} <= set(reasons(PHOTOS, method="odd_mixup"))
    assert "method" not in reasons(PHOTOS)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"weights": "x.pth"}, "needs a --backbone"),
        ({"fine_tune": True, "model": "resnet18"}, "cannot be used with --model"),
    ],
)
def test_wishes_that_contradict_each_other(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose("photos", PHOTOS, asked, "cpu")
