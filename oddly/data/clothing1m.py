"""Clothing1M: a million images of 14 kinds of clothes labelled by shops, 72,409 by people.

ROOT/category_names_eng.txt, noisy_label_kv.txt and clean_label_kv.txt (`images/7/88/…,….jpg 9`),
noisy_train_key_list.txt and clean_{train,val,test}_key_list.txt (a path per line, no final
newline). `clothing1m:noisy` trains on the million, `clothing1m:clean` on the 47,570; both are
tested on the clean test set.
"""

from __future__ import annotations

from pathlib import Path

from oddly.data.base import DataOptions, LabelledData, Recipe, find_folder
from oddly.data.files import FileList
from oddly.data.large import load_large, read_labels, read_lines
from oddly.errors import InputError, count, first_few

RECIPE = Recipe(model="resnet50", epochs=10, batch_size=64, learning_rate=1e-3, weight_decay=1e-3)
SETTINGS = ("noisy", "clean")
WHAT = "clothing1m/ (category_names_eng.txt …)"


def load_clothing1m(setting: str, options: DataOptions) -> LabelledData:
    """The data with noisy or with clean training labels."""
    root = find_folder("clothing1m", options)
    names = [line.strip() for line in read_lines(root / "category_names_eng.txt", WHAT)]
    names = [name for name in names if name]
    if len(names) < 2:
        raise InputError(f"{root / 'category_names_eng.txt'} contains no class names")
    train = read_keys(root, f"{setting}_train", setting, len(names))
    test = read_keys(root, "clean_test", "clean", len(names))
    # Pretrained networks are fine-tuned with plain crops: no random areas.
    return load_large(f"clothing1m:{setting}", root, names, (train, test), options, RECIPE, None)


def read_keys(root: Path, keys: str, labels: str, num_classes: int) -> FileList:
    """The files of a key list, each once, with their labels."""
    path = root / f"{keys}_key_list.txt"
    lines = (line.strip() for line in read_lines(path, WHAT))
    wanted = list(dict.fromkeys(line for line in lines if line))
    known = read_labels(root / f"{labels}_label_kv.txt", WHAT, num_classes)
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise InputError(
            f"{path}: {count(len(unknown), 'key')} without a label in {labels}_label_kv.txt:"
            f" {first_few(unknown, 3)}"
        )
    return FileList(wanted, [known[key] for key in wanted])
