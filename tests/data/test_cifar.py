from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor

from oddly.data import DataOptions, LabelledData, add_noise, load_data
from oddly.errors import InputError

SUPER_CLASSES = {  # five of the twenty, as the dataset's page lists them
    "beaver dolphin otter seal whale",
    "orchid poppy rose sunflower tulip",
    "baby boy girl man woman",
    "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "lawn_mower rocket streetcar tank tractor",
}


@pytest.fixture(scope="module")
def cifar10(cifar_root: Path) -> LabelledData:
    return load_data("cifar10", DataOptions(data_dir=cifar_root))


@pytest.fixture(scope="module")
def cifar100(cifar_root: Path) -> LabelledData:
    return load_data("cifar100", DataOptions(data_dir=cifar_root))


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_shape_and_balance(name: str, request: pytest.FixtureRequest) -> None:
    data: LabelledData = request.getfixturevalue(name)
    classes = len(data.class_names)
    assert data.test is not None and isinstance(data.train.images, Tensor)
    assert data.train.images.shape == (50_000, 3, 32, 32)
    assert data.train.images.dtype == torch.uint8
    assert torch.bincount(data.train.labels).tolist() == [50_000 // classes] * classes
    assert torch.bincount(data.test.labels).tolist() == [10_000 // classes] * classes
    assert data.train.ids[42] == "train/00042" and data.test.ids[9_999] == "test/09999"
    assert data.true_labels is not None and torch.equal(data.true_labels, data.train.labels)
    pixels = data.train.images[:5000].float() / 255
    assert pixels.mean((0, 2, 3)).tolist() == pytest.approx(data.mean, abs=0.01)
    assert pixels.std((0, 2, 3)).tolist() == pytest.approx(data.std, abs=0.01)
    assert data.recipe.model == "wrn-28-10" and data.augment.pad == 4


def test_cifar10_confusions(cifar10: LabelledData) -> None:
    assert cifar10.confused_with is not None
    names = cifar10.class_names
    pairs = {(names[k], names[other]) for k, other in enumerate(cifar10.confused_with)}
    assert {(a, b) for a, b in pairs if a != b} == {
        ("truck", "automobile"),
        ("bird", "airplane"),
        ("deer", "horse"),
        ("cat", "dog"),
        ("dog", "cat"),
    }
    # The first training image is the well-known frog; the second a truck.
    assert [names[k] for k in cifar10.train.labels[:2].tolist()] == ["frog", "truck"]


def test_cifar10_asymmetric_error_rate_is_about_half(cifar10: LabelledData) -> None:
    noisy = add_noise(cifar10, "asymmetric", 0.4, torch.Generator().manual_seed(0))
    wrong = (noisy.train.labels != cifar10.train.labels).double().mean().item()
    assert wrong == pytest.approx(0.2, abs=0.01)


def test_cifar100_confusions_run_round_the_true_super_classes(cifar100: LabelledData) -> None:
    assert cifar100.confused_with is not None
    groups = set()
    for k in range(100):
        ring = [k]
        while (following := cifar100.confused_with[ring[-1]]) != k:
            ring.append(following)
        assert len(ring) == 5
        groups.add(" ".join(cifar100.class_names[j] for j in sorted(ring)))
    assert len(groups) == 20 and groups >= SUPER_CLASSES


def test_cifar_images_are_upright_pictures(cifar10: LabelledData) -> None:
    """Neighbouring pixels are alike along rows and columns: the bytes are laid out right."""
    assert isinstance(cifar10.train.images, Tensor)
    pixels = cifar10.train.images[:500].float()
    across = (pixels[..., 1:] - pixels[..., :-1]).abs().mean()
    down = (pixels[..., 1:, :] - pixels[..., :-1, :]).abs().mean()
    apart = (pixels - pixels.flip(0)).abs().mean()  # pixels that have nothing to do with another
    assert across < apart / 3 and down < apart / 3


def linked(cifar_root: Path, tmp_path: Path, without: str) -> Path:
    """The official CIFAR-10 folder less one file."""
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for file in (cifar_root / "cifar-10-batches-py").iterdir():
        if file.name != without:
            (folder / file.name).symlink_to(file)
    return folder


def test_missing_file_is_named(cifar_root: Path, tmp_path: Path) -> None:
    linked(cifar_root, tmp_path, "data_batch_3")
    with pytest.raises(InputError, match=r"data_batch_3 is missing; use --download.*--data-dir"):
        load_data("cifar10", DataOptions(data_dir=tmp_path))


class Harmful:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def test_a_changed_file_is_never_unpickled(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "batches.meta").write_bytes(pickle.dumps(Harmful(tmp_path / "harmed")))
    with pytest.raises(InputError, match=r"batches\.meta is corrupt .*--download.*--data-dir"):
        load_data("cifar10", DataOptions(data_dir=tmp_path))
    assert not (tmp_path / "harmed").exists()


def test_a_truncated_file_is_corrupt(cifar_root: Path, tmp_path: Path) -> None:
    folder = linked(cifar_root, tmp_path, "test_batch")
    whole = (cifar_root / "cifar-10-batches-py" / "test_batch").read_bytes()
    (folder / "test_batch").write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"test_batch is corrupt \(31,035,525 bytes"):
        load_data("cifar10", DataOptions(data_dir=tmp_path))


def test_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"cifar-100-python/meta is missing"):
        load_data("cifar100", DataOptions(data_dir=tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^data/cifar-10-batches-py/batches\.meta is missing"):
        load_data("cifar10", DataOptions())


def test_the_folder_itself_may_be_named(cifar_root: Path) -> None:
    folder = cifar_root / "cifar-10-batches-py"
    assert len(load_data("cifar10", DataOptions(data_dir=folder, download=True)).train) == 50_000
