from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import Subset

from oddly.data import synthetic
from oddly.data.noise import error_rate
from oddly.engine.build import (
    TEST_BATCH,
    build,
    choose_device,
    method_settings,
    prepare_data,
    use_bf16,
)
from oddly.engine.config import RunConfig
from oddly.errors import InputError

CPU = torch.device("cpu")


def test_the_recipe_and_the_methods_settings_end_up_in_the_config() -> None:
    config = build(RunConfig("synthetic", settings={"percentile": "20"})).config
    assert (config.model, config.epochs, config.batch_size) == ("resnet8", 10, 32)
    assert config.settings["percentile"] == 20.0
    assert config.settings["draws"] == 20_000  # also what nobody set


def test_settings_of_other_methods_are_noted_and_left_out() -> None:
    parts = build(RunConfig("synthetic", method="erm", settings={"prune_after": 3}))
    assert parts.notes == ["ignored setting 'prune_after': erm has no such setting"]
    assert parts.config.settings == {}


def test_the_optimiser_is_as_asked() -> None:
    options = {"momentum": 0.8, "nesterov": False, "weight_decay": 0.01, "learning_rate": 0.3}
    (group,) = build(RunConfig("synthetic", **options)).optimizer.param_groups  # type: ignore[arg-type]
    assert {name: group[name] for name in ("momentum", "nesterov", "weight_decay", "lr")} == {
        "momentum": 0.8,
        "nesterov": False,
        "weight_decay": 0.01,
        "lr": 0.3,
    }


def test_no_momentum_goes_without_nesterov() -> None:
    (group,) = build(RunConfig("synthetic", momentum=0.0)).optimizer.param_groups
    assert group["nesterov"] is False


def test_feeds_by_split() -> None:
    parts = build(RunConfig("synthetic", batch_size=16))
    assert parts.train_feed.batch_size == 16 and len(parts.train_feed.split) == 120
    assert parts.test_feed is not None and len(parts.test_feed.split) == 60
    assert parts.test_feed.batch_size == TEST_BATCH


def test_seeds_go_their_own_ways() -> None:
    """Another noise seed changes labels only, another init seed weights only."""

    def weights(config: RunConfig) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in build(config).model.parameters()])

    plain = RunConfig("synthetic", noise=0.5)
    other_noise = RunConfig("synthetic", noise=0.5, noise_seed=1)
    other_init = RunConfig("synthetic", noise=0.5, init_seed=1)
    labels = [prepare_data(c).train.labels for c in (plain, other_noise, other_init)]
    assert not torch.equal(labels[0], labels[1]) and torch.equal(labels[0], labels[2])
    assert torch.equal(weights(plain), weights(other_noise))
    assert not torch.equal(weights(plain), weights(other_init))


def test_labels_are_replaced_before_noise_is_added(tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("id,label\ntrain/00000,class 2\ntrain/00001,class 2\n")
    clean = synthetic()
    data = prepare_data(RunConfig("synthetic", labels=str(table)))
    assert data.train.labels[:2].tolist() == [2, 2]
    wrong = int((data.train.labels != clean.train.labels).sum())
    assert error_rate(data) == wrong / 120
    noisy = prepare_data(RunConfig("synthetic", labels=str(table), noise=1.0, noise_kind="pair"))
    assert noisy.train.labels[:2].tolist() == [0, 0]


def test_own_data_gets_noise_too() -> None:
    data = prepare_data(RunConfig("synthetic", noise=1.0, noise_kind="uniform_other"), synthetic())
    assert error_rate(data) == 1.0


def test_own_data_is_looked_at_first() -> None:
    data = synthetic()
    outside = data.train.labels.clone()
    outside[4] = 3
    with pytest.raises(InputError, match="synthetic, train: label 3 of example 4 is outside 0..2"):
        prepare_data(RunConfig("mine"), data.with_given_labels(outside))
    with pytest.raises(InputError, match="120 images, 119 labels and 120 ids"):
        prepare_data(RunConfig("mine"), data.with_given_labels(outside[1:] % 3))
    with pytest.raises(InputError, match="119 true labels for 120 examples"):
        prepare_data(RunConfig("mine"), replace(data, true_labels=outside[1:]))


def test_devices() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda' is not available .*--device auto"):
            choose_device("cuda")


def test_precision() -> None:
    assert not use_bf16("auto", CPU)
    assert use_bf16("bf16", CPU) and not use_bf16("fp32", CPU)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RunConfig("syntetic"), "unknown dataset 'syntetic'; did you mean 'synthetic'?"),
        (RunConfig("synthetic", method="ood"), "unknown method 'ood'; did you mean 'odd'?"),
        (RunConfig("synthetic", model="resnet7"), "unknown model 'resnet7'"),
        (RunConfig("synthetic", settings={"percentil": 3}), "did you mean 'percentile'?"),
        (RunConfig("synthetic", settings={"percentile": 101}), "within 0..100"),
        (RunConfig("synthetic", epochs=4, settings={"prune_after": 5}), "beyond the 4 epochs"),
        (RunConfig("synthetic", noise=0.3, noise_kind="asymmetric"), "use pair"),
        (RunConfig("synthetic", model=""), "unknown model ''"),
    ],
)
def test_what_cannot_be_built(config: RunConfig, message: str) -> None:
    with pytest.raises(InputError) as caught:
        build(config)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_on_frozen_features_there_are_sentinels_however_few_the_examples() -> None:
    frozen = RunConfig("synthetic", backbone="test_vit", weights="pretrained")
    assert method_settings(frozen) == {"counterfactual": "sentinels"}
    asked = replace(frozen, settings={"counterfactual": "weights"})
    assert method_settings(asked) == {"counterfactual": "weights"}
    assert method_settings(replace(frozen, fine_tune=True)) == {}
    assert method_settings(replace(frozen, method="erm")) == {}


@pytest.fixture
def frozen(tmp_path: Path) -> RunConfig:
    import timm

    torch.save(timm.create_model("test_efficientnet").state_dict(), tmp_path / "tiny.pth")
    weights = str(tmp_path / "tiny.pth")
    return RunConfig("synthetic", backbone="test_efficientnet", weights=weights)


def test_a_frozen_backbone_looks_at_data_of_ones_own_as_at_any_other(frozen: RunConfig) -> None:
    named, own = (build(frozen, data) for data in (None, synthetic()))
    assert own.config == named.config and own.config.model == "feature_head"
    assert own.data.train.holds_features and own.data.image_shape == named.data.image_shape
    assert torch.equal(own.train_feed.labels, named.train_feed.labels)
    assert isinstance(own.train_feed.images, Tensor) and isinstance(named.train_feed.images, Tensor)
    assert torch.equal(own.train_feed.images, named.train_feed.images)
    again = build(frozen, own.data)  # features already: they are taken as they are
    assert isinstance(again.train_feed.images, Tensor)
    assert torch.equal(again.train_feed.images, own.train_feed.images)


def test_what_a_frozen_backbone_cannot_look_at(frozen: RunConfig) -> None:
    """A dataset that is not ours to resize; two channels."""
    for data in (synthetic(), synthetic(channels=2)):
        assert isinstance(data.train.images, Tensor)
        if data.image_shape[0] == 3:
            pictures: Any = list(data.train.images)
            decoded: Subset[Tensor] = Subset(pictures, range(len(data.train)))
            data = replace(data, train=replace(data.train, images=decoded))
        with pytest.raises(InputError, match=r"frozen backbone needs image files, or images"):
            build(frozen, data)
