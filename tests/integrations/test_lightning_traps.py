"""What others do to a Trainer, and what used to go wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset, WeightedRandomSampler

from oddly.errors import InputError
from tests.integrations.toy import BATCH, EPOCHS, K, N, check, make_blobs

lightning = pytest.importorskip("lightning")

from lightning.pytorch.callbacks import LearningRateFinder  # noqa: E402
from lightning.pytorch.tuner import Tuner  # noqa: E402
from lightning.pytorch.utilities import CombinedLoader  # noqa: E402

from oddly.integrations.lightning import Denoise  # noqa: E402
from tests.integrations.modules import (  # noqa: E402
    QUIET,
    Blobs,
    Tuned,
    make_trainer,
    train_loader,
)

pytestmark = QUIET


@pytest.mark.filterwarnings("ignore:.*lr_find")
def test_a_learning_rate_finder_takes_its_steps_unnoticed(tmp_path: Path) -> None:
    """It swaps the callbacks for its own, and changes for how long one trains."""
    options = {"num_training_steps": 20, "max_lr": 0.5, "update_attr": False}
    denoise = Denoise(K)
    make_trainer(denoise, LearningRateFinder(**options), default_root_dir=tmp_path).fit(Tuned())
    assert denoise._feed is not None
    assert denoise._feed.denoiser.rule.epochs == EPOCHS
    check(denoise.verdict)


@pytest.mark.filterwarnings("ignore:.*lr_find")
def test_a_tuner_before_the_fit(tmp_path: Path) -> None:
    denoise, module = Denoise(K), Tuned()
    trainer = make_trainer(denoise, default_root_dir=tmp_path)
    Tuner(trainer).lr_find(module, num_training=20, max_lr=0.5, update_attr=False)
    trainer.fit(module)
    check(denoise.verdict)


class Point(NamedTuple):
    inputs: Tensor
    label: Tensor


class Points(Dataset[Any]):
    """Blobs, each made into an item."""

    def __init__(self, make: Any) -> None:
        self.points, self.given, _ = make_blobs()
        self.make = make

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return self.make(self.points[index], self.given[index], index)


class Hooked(Blobs):
    """Its hooks and steps see the batches of its loader, and nothing else."""

    def __init__(self, kind: type[Any], unpack: Any) -> None:
        super().__init__()
        self.kind, self.unpack = kind, unpack

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        if self.trainer.training:
            assert type(batch) is self.kind
            self.unpack(batch)
        return batch

    def training_step(self, batch: Any, number: int) -> Any:
        assert type(batch) is self.kind
        return super().training_step(self.unpack(batch), number)


def pair(items: list[Any]) -> tuple[Tensor, Tensor]:
    inputs, labels = zip(*items, strict=True)
    return torch.stack(inputs), torch.stack(labels)


def two(batch: Any) -> Any:
    inputs, labels = batch
    return inputs, labels


def own_index(batch: Any) -> Any:
    assert sorted(batch) == ["index", "label", "x"]
    assert (batch["index"] >= 1000).all()
    return batch["x"], batch["label"]


@pytest.mark.parametrize(
    ("make", "collate", "kind", "unpack", "key"),
    [
        (lambda x, y, _: (x, y), None, list, two, None),
        (lambda x, y, _: (x, y), pair, tuple, two, None),
        (lambda x, y, _: Point(x, y), None, Point, two, None),
        (lambda x, y, i: {"x": x, "label": y, "index": 1000 + i}, None, dict, own_index, None),
        (lambda x, y, i: (x, i, y), None, list, lambda batch: (batch[0], batch[2]), 2),
    ],
    ids=["list", "tuple", "namedtuple", "index", "triple"],
)
def test_batches_reach_hooks_and_steps_untouched(
    make: Any, collate: Any, kind: type[Any], unpack: Any, key: Any
) -> None:
    denoise = Denoise(K, label_key=key)
    loader = DataLoader(Points(make), BATCH, shuffle=True, collate_fn=collate)
    make_trainer(denoise).fit(Hooked(kind, unpack), loader)
    check(denoise.verdict)


class Reordered(Blobs):
    def training_step(self, batch: Any, number: int) -> Any:
        batch[:] = [column.flip(0) for column in batch]
        return super().training_step(batch, number)


class OneHot(Blobs):
    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        return batch[0], torch.eye(K)[batch[1]]


@pytest.mark.parametrize(
    ("module", "loader", "message"),
    [
        (Reordered, train_loader, "planted labels were observed as other labels"),
        (OneHot, train_loader, "expected one class index"),
        (
            Blobs,
            lambda: DataLoader(TensorDataset(torch.zeros(N, 2), torch.arange(N)), BATCH),
            "is outside 0..4: use label_key=",
        ),
    ],
)
def test_labels_that_are_not_what_they_seem(module: Any, loader: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_trainer(Denoise(K), num_sanity_val_steps=0).fit(module(), loader())


def test_a_refusal_leaves_torch_as_it_was() -> None:
    """Lightning replaces these while it asks for a loader, and puts them back if all goes well."""
    names = ("__init__", "__setattr__", "__delattr__")
    before = [getattr(DataLoader, name) for name in names]
    weights = WeightedRandomSampler(torch.ones(N), N)
    loader = DataLoader(TensorDataset(torch.zeros(N, 2), torch.arange(N) % K), sampler=weights)
    with pytest.raises(InputError, match="WeightedRandomSampler would be lost"):
        make_trainer(Denoise(K), num_sanity_val_steps=0).fit(Blobs(), loader)
    assert [getattr(DataLoader, name) for name in names] == before
    with pytest.raises(TypeError):  # whatever goes wrong
        make_trainer(Denoise(K, percentile="a"), num_sanity_val_steps=0).fit(
            Blobs(), train_loader()
        )
    assert [getattr(DataLoader, name) for name in names] == before


@pytest.mark.parametrize(
    ("make", "kind"),
    [(lambda loaders: dict(enumerate(loaders)), "dict"), (CombinedLoader, "CombinedLoader")],
)
def test_several_loaders_are_refused_by_their_number(make: Any, kind: str) -> None:
    loaders = make([train_loader(), train_loader()])
    with pytest.raises(InputError, match=f"a single train loader, got a {kind} of 2: return one"):
        make_trainer(Denoise(K), num_sanity_val_steps=0).fit(Blobs(), loaders)


def test_who_hardly_looks_is_told() -> None:
    unseen = pytest.warns(UserWarning, match=r"\d+ of 640 examples were never seen and are kept")
    with unseen, pytest.warns(UserWarning, match="the network has hardly learnt") as caught:
        make_trainer(Denoise(K), limit_train_batches=2).fit(Blobs(), train_loader())
    told = [warning for warning in caught if "hardly learnt" in str(warning.message)]
    assert len(told) == 1 and told[0].filename == __file__  # where fit was called


@pytest.mark.filterwarnings("ignore:the network has hardly learnt")  # in one epoch
@pytest.mark.parametrize(("options", "seed"), [({}, 7), ({"seed": 3}, 3)])
def test_the_seed_is_lightnings(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], seed: int
) -> None:
    for name in ("PL_GLOBAL_SEED", "PL_SEED_WORKERS"):
        monkeypatch.setenv(name, "0")  # so that it is put back
    lightning.seed_everything(7, verbose=False)
    assert os.environ["PL_GLOBAL_SEED"] == "7"
    denoise = Denoise(K, prune_after=1, **options)
    make_trainer(denoise, max_epochs=1).fit(Blobs(), train_loader())
    assert denoise._feed is not None
    assert denoise._feed.denoiser.seed == seed


def test_a_misspelt_option_is_told_at_once() -> None:
    with pytest.raises(InputError, match="unknown option 'percentil'"):
        Denoise(K, percentil=10)


def test_a_lightning_that_changed_inside_is_told_of_in_one_line() -> None:
    trainer = make_trainer(Denoise(K))
    trainer.fit_loop._data_source = object()  # type: ignore[assignment]
    with pytest.raises(InputError, match="does not support this version of Lightning"):
        Denoise(K).setup(trainer, Blobs(), "fit")
    Denoise(K).teardown(trainer, Blobs(), "fit")
