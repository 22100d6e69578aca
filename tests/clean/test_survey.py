from __future__ import annotations

from pathlib import Path

from PIL import Image

from oddly.clean.survey import Survey, about_lookalikes, find_lookalikes, survey
from oddly.data import DataOptions, load_data
from tests.clean.conftest import write_pictures


def test_survey_counts_without_decoding(tmp_path: Path) -> None:
    write_pictures(tmp_path, 4)
    Image.new("RGB", (30, 20)).save(tmp_path / "red" / "more.png")
    (tmp_path / "red" / "broken.png").write_bytes(b"junk")
    data = load_data(str(tmp_path), DataOptions(decode=False))
    assert survey(data) == Survey(
        images=14, classes=3, smallest_class=4, largest_class=6, short_side=12
    )
    assert survey(data).imbalance == 1.5


def test_names_that_differ_only_in_case_or_blanks() -> None:
    names = ["Cat", "cat", " dog", "dog ", "bird", "blue tit", "bluetit"]
    assert find_lookalikes(names) == [["Cat", "cat"], [" dog", "dog "], ["blue tit", "bluetit"]]
    assert "'Cat' / 'cat', ' dog' / 'dog '" in about_lookalikes(names)[0]
    assert about_lookalikes(["a", "b"]) == []
