from __future__ import annotations

from oddly.data.listing import natural, storable
from oddly.errors import count, first_few, shown


def test_natural_order() -> None:
    names = ["img10", "img2", "img1", "b", "img02", "10", "9", "a" + "9" * 5000]
    expected = ["9", "10", "a" + "9" * 5000, "b", "img1", "img02", "img2", "img10"]
    assert sorted(names, key=natural) == expected


def test_messages_stay_on_one_line() -> None:
    assert shown("größe 猫.png") == "größe 猫.png"
    assert shown("a\nb\udcff") == "a\\nb\\udcff"
    assert first_few(["a", "b"]) == "a, b"
    assert first_few(["a", "b", "c"], 2) == "a, b, …"
    assert count(1, "image") == "1 image" and count(1200, "image") == "1,200 images"


def test_storable_names_are_utf8_and_stay_apart() -> None:
    assert storable("猫") == "猫"
    escaped = {storable("a\udcff"), storable("a\udcfe")}
    assert len(escaped) == 2 and all(name.encode("utf-8") for name in escaped)
