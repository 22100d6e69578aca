"""WebVision 1.0: 2.4 million images from Google and Flickr under ImageNet's 1,000 labels.

ROOT/info/train_filelist_google.txt and train_filelist_flickr.txt (`PATH LABEL`), info/
val_filelist.txt (`val000001.jpg LABEL`, images in ROOT/val_images_256/), info/synsets.txt (line k
names class k - 1). `webvision:mini` are the classes below 50.
"""

from __future__ import annotations

from oddly.data.base import DataOptions, LabelledData, Recipe, find_folder
from oddly.data.large import listed, load_large, read_labels, read_lines
from oddly.errors import InputError

RECIPE = Recipe(
    model="inception_resnet_v2",
    epochs=50,
    batch_size=256,
    learning_rate=0.1,
    weight_decay=1e-4,
)
TRAIN_LISTS = ("train_filelist_google.txt", "train_filelist_flickr.txt")
MINI = 50


def load_webvision(mini: bool, options: DataOptions) -> LabelledData:
    """Class names are synsets, so that they can be matched with ImageNet's validation set."""
    root = find_folder("webvision", options)
    what = "webvision/info/"
    lines = read_lines(root / "info/synsets.txt", what)
    synsets = [line.split()[0] for line in lines if line.strip()]
    if len(synsets) < 2:
        raise InputError(f"{root / 'info/synsets.txt'} contains no class names")
    train: dict[str, int] = {}
    for name in TRAIN_LISTS:
        train |= read_labels(root / "info" / name, what, len(synsets))
    test = read_labels(root / "info/val_filelist.txt", what, len(synsets))
    if mini:
        train, test = ({k: v for k, v in each.items() if v < MINI} for each in (train, test))
        synsets = synsets[:MINI]
    lists = (listed(train), listed(test, "val_images_256/"))
    name = "webvision:mini" if mini else "webvision"
    return load_large(name, root, synsets, lists, options, RECIPE)
