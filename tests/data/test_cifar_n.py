from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from oddly.data import DataOptions, error_rate, load_data
from oddly.data.cifar_n import HUMAN_LABELS
from oddly.errors import InputError


@pytest.fixture
def root(cifar_root: Path, tmp_path: Path) -> Path:
    """The official folders by link, so that label files can be put beside them."""
    for name in ("cifar-10-batches-py", "cifar-100-python"):
        (tmp_path / name).symlink_to(cifar_root / name)
    return tmp_path


@pytest.fixture(scope="module")
def official(cifar_root: Path) -> np.ndarray:
    data = load_data("cifar10", DataOptions(data_dir=cifar_root))
    return data.train.labels.numpy().copy()


def load(name: str, root: Path):  # type: ignore[no-untyped-def]
    return load_data(name, DataOptions(data_dir=root))


@pytest.mark.parametrize(("kind", "rate"), [("aggregate", 0.0901), ("random1", 0.17234)])
def test_real_labels_and_their_error_rates(
    root: Path, human_labels: Path, kind: str, rate: float
) -> None:
    shutil.copy(human_labels, root / "cifar10n_some.npz")
    data = load(f"cifar10n:{kind}", root)
    assert data.name == f"cifar10n:{kind}"
    assert error_rate(data) == pytest.approx(rate, abs=1e-9)


def pt_file(root: Path, official: np.ndarray, **changes: object) -> Path:
    """A file like the public one: every set of labels is wrong in a place of its own."""
    content: dict[str, object] = {"clean_label": official}
    keys = [w.pt_key for n, w in HUMAN_LABELS.items() if n.startswith("cifar10n")]
    for place, key in enumerate(sorted(keys)):
        labels = official.copy()
        labels[place] = (labels[place] + 1) % 10
        content[key] = labels
    torch.save(content | changes, root / "CIFAR-10_human.pt")
    return root / "CIFAR-10_human.pt"


def test_public_file(root: Path, official: np.ndarray) -> None:
    pt_file(root, official)
    places = {}
    for name in ("aggregate", "random1", "worst"):
        data = load(f"cifar10n:{name}", root)
        assert np.array_equal(data.true_labels.numpy(), official)
        places[name] = torch.nonzero(data.train.labels != data.true_labels).flatten().tolist()
    assert places == {"aggregate": [0], "random1": [1], "worst": [4]}


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_public_file_written_by_any_numpy(root: Path, official: np.ndarray, module: str) -> None:
    """NumPy 2 has moved _reconstruct from the first to the second."""
    file = pt_file(root, official.astype(np.int32))
    moved = root / "moved.pt"
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(moved, "w") as target:
        for item in source.namelist():
            content = source.read(item)
            if item.endswith("data.pkl"):
                content, times = re.subn(rb"numpy\._?core\.multiarray", module.encode(), content)
                assert times
            target.writestr(item, content)
    moved.rename(file)
    assert error_rate(load("cifar10n:random2", root)) == pytest.approx(1 / 50_000)


def test_other_order_is_refused(root: Path, official: np.ndarray) -> None:
    pt_file(root, official, clean_label=official[::-1].copy())
    with pytest.raises(InputError, match="clean_label does not match the official labels"):
        load("cifar10n:aggregate", root)
    (root / "CIFAR-10_human.pt").unlink()
    np.savez(root / "cifar10n.npz", worst=np.roll(official, 7))
    with pytest.raises(InputError, match="only 10% of the labels agree"):
        load("cifar10n:worst", root)


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def test_harmful_pt_is_not_run(root: Path) -> None:
    torch.save({"clean_label": Harmful(root / "harmed")}, root / "CIFAR-10_human.pt")
    with pytest.raises(InputError, match="cannot be read safely"):
        load("cifar10n:aggregate", root)
    assert not (root / "harmed").exists()


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04junk"])
def test_broken_files(root: Path, content: bytes) -> None:
    (root / "CIFAR-10_human.pt").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read safely"):
        load("cifar10n:aggregate", root)
    (root / "CIFAR-10_human.pt").unlink()
    (root / "cifar10n.npz").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read safely"):
        load("cifar10n:aggregate", root)


def test_pickled_arrays_in_an_npz_are_refused(root: Path) -> None:
    np.savez(root / "cifar10n.npz", aggregate=np.array([Harmful(root / "harmed")], dtype=object))
    with pytest.raises(InputError, match="cannot be read safely"):
        load("cifar10n:aggregate", root)
    assert not (root / "harmed").exists()


def test_odd_contents(root: Path, official: np.ndarray) -> None:
    for labels, reason in (
        (official[:-1], "49,999 labels for 50,000 images"),
        (official + 1, r"label 10 of example 1 is outside 0\.\.9"),
        (official.astype(float), "not a flat array of integers"),
        (official.reshape(2, -1), "not a flat array of integers"),
    ):
        np.savez(root / "cifar10n.npz", aggregate=labels)
        with pytest.raises(InputError, match=reason):
            load("cifar10n:aggregate", root)
    torch.save([1, 2], root / "CIFAR-10_human.pt")
    with pytest.raises(InputError, match="not a dict"):
        load("cifar10n:aggregate", root)
    torch.save({"clean_label": official}, root / "CIFAR-10_human.pt")
    with pytest.raises(InputError, match="has no 'aggre_label', only clean_label"):
        load("cifar10n:aggregate", root)


def test_missing_file_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load("cifar10n:random3", tmp_path)
    for part in (str(tmp_path), "CIFAR-10_human.pt", "cifar10n*.npz", "'random3'", "--data-dir"):
        assert part in str(caught.value)
    np.savez(tmp_path / "cifar10n_x.npz", random1=np.zeros(3, int))
    with pytest.raises(InputError, match=r"not in cifar10n_x\.npz"):
        load("cifar10n:random3", tmp_path)


def test_cifar100n(root: Path, cifar_root: Path) -> None:
    clean = load_data("cifar100", DataOptions(data_dir=cifar_root)).train.labels.numpy()
    noisy = clean.copy()
    noisy[:100] = (noisy[:100] + 1) % 100
    torch.save({"clean_label": clean, "noisy_label": noisy}, root / "CIFAR-100_human.pt")
    data = load("cifar100n", root)
    assert error_rate(data) == 0.002 and len(data.class_names) == 100
