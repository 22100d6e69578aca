"""ImageNet, WebVision and Clothing1M in their true layouts, odd corners included."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from PIL import Image

from oddly.data import load_data
from oddly.data.base import DataOptions
from oddly.data.source import ImageFiles
from oddly.errors import InputError
from oddly.experiments.made_trees import CLOTHES, SYNSETS, TEST, TRAIN, make_all

SETS = ("imagenet", "webvision", "clothing1m:noisy", "clothing1m:clean")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trees")
    make_all(made)
    return made


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A tree of one's own, to break."""
    make_all(tmp_path)
    return tmp_path


def test_trees_are_made_once_however_many_ask(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make_all, [tmp_path] * 4))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clothing1m",
        "imagenet",
        "webvision",
    ]
    image = tmp_path / "imagenet" / "train" / SYNSETS[0] / f"{SYNSETS[0]}_0.JPEG"
    before = image.stat().st_mtime_ns
    make_all(tmp_path)
    assert image.stat().st_mtime_ns == before


def options(root: Path, **more: bool) -> DataOptions:
    return DataOptions(data_dir=root, image_size=14, **more)


@pytest.mark.parametrize("name", SETS)
def test_every_image_is_there_and_decodes(root: Path, name: str) -> None:
    data = load_data(name, options(root))
    per_class = TRAIN // 2 if name == "clothing1m:clean" else TRAIN
    assert torch.bincount(data.train.labels).tolist() == [per_class] * 4
    assert data.test is not None and torch.bincount(data.test.labels).tolist() == [TEST] * 4
    assert isinstance(data.train.images, ImageFiles) and data.image_shape == (3, 14, 14)
    brightness = [[], [], [], []]  # type: list[list[float]]
    for i in range(len(data.train)):  # greyscale and CMYK ones too
        image = data.train.images[i]
        assert image.shape == (3, 16, 16) and image.dtype == torch.uint8
        brightness[int(data.train.labels[i])].append(float(image.float().mean()))
    means = [sum(each) / len(each) for each in brightness]
    assert means == sorted(means)  # classes are grey levels: the labels are those of the files


def test_the_odd_modes_really_occur(root: Path) -> None:
    folder = root / "imagenet" / "train" / SYNSETS[0]
    modes = []
    for i in range(3):
        with Image.open(folder / f"{SYNSETS[0]}_{i}.JPEG") as image:
            modes.append(image.mode)
    assert modes == ["L", "CMYK", "RGB"]


def test_class_names_and_truth(root: Path) -> None:
    imagenet, webvision = (load_data(name, options(root)) for name in ("imagenet", "webvision"))
    assert list(imagenet.class_names) == list(webvision.class_names) == list(SYNSETS)
    assert imagenet.true_labels is not None and webvision.true_labels is None
    clothes = load_data("clothing1m:noisy", options(root))
    assert list(clothes.class_names) == list(CLOTHES) and clothes.augment.area is None
    assert all("," in key for key in clothes.train.ids)


def test_webvision_takes_both_lists(root: Path) -> None:
    data = load_data("webvision", options(root))
    assert {path.split("/")[0] for path in data.train.ids} == {"google", "flickr"}
    assert data.test is not None and data.test.ids[0] == "val_images_256/val000001.jpg"
    assert len(load_data("webvision:mini", options(root)).train) == len(data.train)  # all below 50


def test_the_folder_itself_may_be_given(root: Path) -> None:
    data = load_data("imagenet", DataOptions(data_dir=root / "imagenet", image_size=14))
    assert len(data.train) == 4 * TRAIN


@pytest.mark.parametrize("name", SETS[1:])
def test_missing_images_are_told_or_left_out(own: Path, name: str) -> None:
    data = load_data(name, options(own))
    folder = own / name.split(":")[0]
    for i in (3, 7):
        (folder / data.train.ids[i]).unlink()
    with pytest.raises(InputError, match=r"2 of \d+ images missing: .*--skip-unreadable"):
        load_data(name, options(own))
    fewer = load_data(name, options(own, skip_unreadable=True))
    assert len(fewer.train) == len(data.train) - 2 and "left out" in fewer.notes[0]
    assert data.train.ids[3] not in fewer.train.ids


@pytest.mark.parametrize(
    ("name", "file", "told"),
    [
        (
            "imagenet",
            "imagenet/train",
            "train is missing; set --data-dir to the folder that contains imagenet/train",
        ),
        (
            "webvision",
            "webvision/info/synsets.txt",
            "is missing; set --data-dir to the folder that contains webvision",
        ),
        (
            "clothing1m:clean",
            "clothing1m/clean_label_kv.txt",
            "is missing; set --data-dir to the folder that contains clothing1m",
        ),
    ],
)
def test_a_missing_part_is_one_clear_line(own: Path, name: str, file: str, told: str) -> None:
    (own / file).rename(own / "elsewhere")
    with pytest.raises(InputError, match=told):
        load_data(name, options(own))


@pytest.mark.parametrize("label", ["", " 4", " -1", " ²", " " + "9" * 5000])
def test_a_bad_label_line_is_named(own: Path, label: str) -> None:
    path = own / "clothing1m" / "noisy_label_kv.txt"
    path.write_text(f"{path.read_text()}images/1/a,b.jpg{label}")
    with pytest.raises(InputError, match=rf"line {4 * TRAIN + 1}: expected PATH LABEL"):
        load_data("clothing1m:noisy", options(own))


def test_lists_that_went_through_other_editors(own: Path) -> None:
    """A byte order mark, lines that end as on Windows, a name with a sign that some break at."""
    before = {name: load_data(name, options(own)) for name in SETS[1:]}
    odd = "images/0/3/noisy\u2028train,3.jpg"
    (own / "clothing1m" / before[SETS[2]].train.ids[3]).rename(own / "clothing1m" / odd)
    for path in (*own.glob("clothing1m/*.txt"), *own.glob("webvision/info/*.txt")):
        text = path.read_text().replace(before[SETS[2]].train.ids[3], odd).replace("\n", "\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    for name, data in before.items():
        again = load_data(name, options(own))
        assert again.class_names == data.class_names
        renamed = [odd if each == before[SETS[2]].train.ids[3] else each for each in data.train.ids]
        assert list(again.train.ids) == renamed
        assert torch.equal(again.train.labels, data.train.labels)


def test_blank_lines_and_keys_told_twice_count_for_nothing(own: Path) -> None:
    synsets, keys = own / "webvision/info/synsets.txt", own / "clothing1m/noisy_train_key_list.txt"
    before = load_data("clothing1m:noisy", options(own)).train.ids
    synsets.write_text(synsets.read_text() + "  \n\n")
    keys.write_text(f"{keys.read_text()}\n{before[0]}\n \n{before[1]}")
    assert list(load_data("webvision", options(own)).class_names) == list(SYNSETS)
    assert list(load_data("clothing1m:noisy", options(own)).train.ids) == list(before)


def test_a_key_without_label_is_named(own: Path) -> None:
    path = own / "clothing1m" / "noisy_train_key_list.txt"
    path.write_text(path.read_text() + "\nimages/new,key.jpg")
    with pytest.raises(InputError, match="1 key without a label in noisy_label_kv.txt: images/new"):
        load_data("clothing1m:noisy", options(own))


def test_a_list_that_is_no_text_is_named(own: Path) -> None:
    path = own / "webvision/info/synsets.txt"
    path.write_bytes(b"n01440764 fish\n\xff\n")
    with pytest.raises(InputError, match=r"synsets\.txt is not UTF-8 text"):
        load_data("webvision", options(own))
