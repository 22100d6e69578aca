from __future__ import annotations

from pathlib import Path

from oddly.clean.look import Looked
from oddly.data import DataOptions, load_data
from oddly.data.source import ImageSource


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
