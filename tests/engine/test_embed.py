from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Lock, get_ident

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from oddly.data import DataOptions, load_data, synthetic
from oddly.data.base import Split
from oddly.data.source import ImageFiles, ImageTensor
from oddly.engine import embed as module
from oddly.engine.embed import embed_data, embed_images
from oddly.engine.feature_cache import FeatureCache
from oddly.errors import InputError

CPU = torch.device("cpu")


class Mean(nn.Module):
    """Features that anybody can check: the mean colour."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.lock = 0, Lock()

    def forward(self, images: Tensor) -> Tensor:
        with self.lock:  # several threads look at once
            self.seen += len(images)
        return images.float().mean((2, 3))


def greys(folder: Path, number: int) -> ImageFiles:
    for i in range(number):
        Image.new("RGB", (6, 6), (i, i, i)).save(folder / f"{i}.png")
    return ImageFiles(str(folder), [f"{i}.png" for i in range(number)], 4)


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD", 10)
    monkeypatch.setattr(module, "CPU_BATCH", 4)


@pytest.mark.usefixtures("small_shards")
def test_every_image_in_order_and_the_unreadable_by_place(tmp_path: Path) -> None:
    source = greys(tmp_path, 25)
    (tmp_path / "3.png").write_bytes(b"")
    (tmp_path / "12.png").write_bytes(b"junk")
    told: list[int] = []
    found = embed_images(source, Mean, CPU, progress=told.append)
    assert found.features[:, 0].tolist() == [i for i in range(25) if i not in (3, 12)]
    assert found.unreadable == {3: "empty file", 12: "not an image"}
    assert len(found.digests) == len(set(found.digests)) == 23
    assert told == sorted(told) and told[-1] == 25


@pytest.mark.usefixtures("small_shards")
def test_nothing_is_embedded_twice_unless_it_changed(tmp_path: Path) -> None:
    source, network = greys(tmp_path, 25), Mean()
    (tmp_path / "3.png").write_bytes(b"")
    cache = FeatureCache(tmp_path / "cache", "mean")
    first = embed_images(source, lambda: network, CPU, cache)
    again = embed_images(source, lambda: network, CPU, cache)
    assert network.seen == 24 and torch.equal(first.features, again.features)
    assert again.digests == first.digests and again.unreadable == first.unreadable
    Image.new("RGB", (7, 7), (99, 99, 99)).save(tmp_path / "24.png")
    changed = embed_images(source, lambda: network, CPU, cache)
    assert network.seen == 24 + 5 and int(changed.features[-1, 0]) == 99
    other = FeatureCache(tmp_path / "cache", "another backbone")
    embed_images(source, lambda: network, CPU, other)
    assert network.seen == 24 + 5 + 24


@pytest.mark.usefixtures("small_shards")
def test_a_damaged_cache_is_made_again_and_old_features_go(tmp_path: Path) -> None:
    source, network = greys(tmp_path, 10), Mean()
    cache = FeatureCache(tmp_path / "cache", "mean")
    embed_images(source, lambda: network, CPU, cache)
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:50])
    embed_images(source, lambda: network, CPU, cache)
    assert network.seen == 20
    (tmp_path / "cache" / "old.safetensors").write_bytes(b"x")
    cache.drop_unused()
    assert list((tmp_path / "cache").iterdir()) == [file]


@pytest.mark.usefixtures("small_shards")
def test_what_another_folder_holds_is_taken_over(tmp_path: Path) -> None:
    source, network = greys(tmp_path, 25), Mean()
    first = FeatureCache(tmp_path / "first", "mean")
    made = embed_images(source, lambda: network, CPU, first)
    names = sorted(file.name for file in (tmp_path / "first").iterdir())
    (tmp_path / "first" / names[0]).write_bytes(b"damaged")
    second = FeatureCache(tmp_path / "second", "mean", [tmp_path / "none", tmp_path / "first"])
    found = embed_images(source, lambda: network, CPU, second)
    assert torch.equal(found.features, made.features) and found.digests == made.digests
    assert 25 < network.seen <= 25 + 10  # the damaged shard alone, of at most ten
    second.drop_unused()
    assert sorted(file.name for file in (tmp_path / "second").iterdir()) == names
    assert (tmp_path / "first" / names[0]).read_bytes() == b"damaged"  # not ours to mend


class Threads(nn.Module):
    """Notes who looks, with how many threads of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []
        self.together = Barrier(2, timeout=60)

    def forward(self, images: Tensor) -> Tensor:
        self.together.wait()  # passed only where two look at the same time
        self.seen.append((get_ident(), torch.get_num_threads()))
        return images.float().mean((2, 3))


@pytest.mark.usefixtures("small_shards")
def test_every_core_looks_at_images_of_its_own(tmp_path: Path) -> None:
    source, network = greys(tmp_path, 40), Threads()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = embed_images(source, lambda: network, CPU)
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor(1) as pool:  # whoever begins later has all cores again
            assert pool.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(before)
    assert found.features[:, 0].tolist() == list(range(40))
    lookers, shares = zip(*network.seen, strict=True)
    assert len(set(lookers)) == 2 and set(shares) == {1} and get_ident() not in lookers


class Broken(Mean):
    """Gives up at the 22nd image."""

    def forward(self, images: Tensor) -> Tensor:
        if bool((images == 21).any()):
            raise RuntimeError("out of memory")
        return super().forward(images)


@pytest.mark.usefixtures("small_shards")
def test_what_was_seen_before_it_broke_is_kept(tmp_path: Path) -> None:
    source, network = greys(tmp_path, 40), Mean()
    cache = FeatureCache(tmp_path / "cache", "mean")
    with pytest.raises(RuntimeError, match="out of memory"):
        embed_images(source, Broken, CPU, cache)
    assert len(list((tmp_path / "cache").iterdir())) == 2  # shards of ten
    embed_images(source, lambda: network, CPU, cache)
    assert network.seen == 20


class Unstamped(ImageFiles):
    """Whose images nobody may ask whether they have changed."""

    def stamp(self, index: int) -> str:
        raise AssertionError("nothing is kept, so nothing can be out of date")


def test_without_a_folder_nothing_is_looked_up(tmp_path: Path) -> None:
    source = greys(tmp_path, 3)
    found = embed_images(Unstamped(source.root, source.paths, source.size), Mean, CPU)
    assert found.features[:, 0].tolist() == [0, 1, 2]


def test_a_backbone_is_loaded_only_when_needed(tmp_path: Path) -> None:
    source = greys(tmp_path, 3)
    cache = FeatureCache(tmp_path / "cache", "mean")
    embed_images(source, Mean, CPU, cache)

    def refuse() -> nn.Module:
        raise AssertionError("not needed")

    assert len(embed_images(source, refuse, CPU, cache).features) == 3


def test_data_with_features_for_images(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            Image.new("RGB", (6, 6), (len(name), 2, 3)).save(tmp_path / split / name / "1.png")
    data = load_data(str(tmp_path), DataOptions(decode=False))
    assert not embed_data(data, Mean(), 4, CPU, skip_unreadable=False).notes
    made = embed_data(data, Mean(), 3, CPU, skip_unreadable=False)
    assert made.notes == ("resizing images of 6 px to 3 px (--image-size)",)
    assert isinstance(made.train.images, Tensor) and made.image_shape == (3, 1, 1)
    assert float(made.train.images.float().square().sum(1).mean()) == pytest.approx(1, abs=1e-3)
    assert made.test is not None and torch.equal(made.test.images, made.train.images)  # type: ignore[arg-type]
    assert made.recipe.model == "feature_head" and made.recipe.weight_decay == 1 / 2


def test_unreadable_images_stop_it_unless_they_may_be_skipped(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (6, 6)).save(tmp_path / name / "1.png")
    (tmp_path / "a" / "2.png").write_bytes(b"junk")
    data = load_data(str(tmp_path), DataOptions(decode=False))
    with pytest.raises(InputError, match=r"1 of 3 images cannot be read: a/2.png \(not an image\)"):
        embed_data(data, Mean(), 4, CPU, skip_unreadable=False)
    made = embed_data(data, Mean(), 4, CPU, skip_unreadable=True)
    assert list(made.train.ids) == ["a/1.png", "b/1.png"] and "left out" in made.notes[-1]


def test_images_in_memory_are_brought_to_the_backbones_size() -> None:
    data = synthetic()
    made = embed_data(data, Mean(), 8, CPU, skip_unreadable=False)
    assert isinstance(made.train.images, Tensor) and len(made.train) == len(data.train)
    grey = ImageTensor(torch.full((2, 1, 5, 5), 7, dtype=torch.uint8), 9)
    assert grey[1].shape == (3, 9, 9) and grey[1].unique().tolist() == [7]
    assert grey.stamp(0) == grey.stamp(1) and len(grey.subset([0])) == 1


def test_no_readable_image_at_all(tmp_path: Path) -> None:
    source = greys(tmp_path, 2)
    for i in range(2):
        (tmp_path / f"{i}.png").write_bytes(b"")
    found = embed_images(source, Mean, CPU)
    assert len(found.features) == 0 and len(found.unreadable) == 2
    data = replace(synthetic(), train=Split(source, torch.tensor([0, 1]), ["0", "1"]), test=None)
    with pytest.raises(InputError, match=r"none of the 2 images .*: empty file \(0, 1\)"):
        embed_data(data, Mean(), 8, CPU, skip_unreadable=True)


def test_the_truth_of_unreadable_images_goes_with_them(tmp_path: Path) -> None:
    for name in ("a/0", "a/1", "b/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (6, 6), "red").save(tmp_path / f"{name}.png")
    (tmp_path / "a/0.png").write_bytes(b"junk")
    data = load_data(str(tmp_path), DataOptions(decode=False))
    decided = torch.tensor([True, False, True])
    data = replace(data, true_labels=torch.tensor([0, 1, 1]), decided=decided)
    made = embed_data(data, Mean(), 4, CPU, skip_unreadable=True)
    assert made.true_labels is not None and made.true_labels.tolist() == [1, 1]
    assert made.decided is not None and made.decided.tolist() == [False, True]


def test_beside_a_gpu_every_core_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many clusters set OMP_NUM_THREADS to 1: one thread would let the GPU wait."""
    before = torch.get_num_threads()
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    torch.set_num_threads(1)
    try:
        for device, threads in (("cuda", 6), ("cpu", 1)):
            with module._threads(torch.device(device)) as pool:
                assert pool._max_workers == threads
            assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
