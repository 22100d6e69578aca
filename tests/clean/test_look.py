from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from oddly.clean import look as looking
from oddly.clean.duplicates import find_duplicates
from oddly.clean.look import Looked, look
from oddly.data import DataOptions, load_data
from oddly.data.source import ImageSource
from oddly.engine.config import RunConfig


@pytest.mark.parametrize("limit", [2**31, 100])
def test_copies_are_found_also_where_images_do_not_fit(
    photos: Path, tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "DataOptions", lambda: DataOptions(memory_limit=limit))
    shutil.copy(photos / "red/red0.png", photos / "blue/copy.png")
    listed = load_data(str(photos), DataOptions(pool_splits=True, decode=False))
    config = RunConfig(str(photos), model="resnet8", image_size=8)
    looked = look(listed, config, tmp_path, torch.device("cpu"), None)
    assert isinstance(looked.data.train.images, Tensor) == (limit > 100)
    (group,) = find_duplicates(looked.data.train, looked.source, looked.digests)
    names = [looked.data.train.ids[i] for i in group.places]
    assert names == ["blue/copy.png", "red/red0.png"] and group.conflicting


def test_everything_stays_in_line_when_a_table_removes_examples(
    photos: Path, tmp_path: Path
) -> None:
    data = load_data(str(photos), DataOptions(decode=False))
    assert isinstance(data.train.images, ImageSource)
    digests = [name.encode() for name in data.train.ids]
    first = data.train.ids[0]
    table = tmp_path / "labels.csv"
    table.write_text(f"id,label,remove\n{first},,yes\nred/red5.png,blue,no\n")
    looked = Looked(data, data.train.images, digests, {}).under_labels(table)
    ids = list(looked.data.train.ids)
    assert len(ids) == 35 and first not in ids and ids == list(data.train.ids[1:])
    assert [digest.decode() for digest in looked.digests] == ids
    assert [str(looked.source.source(i)) for i in range(35)] == [str(photos / id) for id in ids]
    assert looked.data.class_names[looked.data.train.labels[ids.index("red/red5.png")]] == "blue"
