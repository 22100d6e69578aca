from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from oddly.experiments.drawing import draw_lines, histogram_points


def test_the_picture_is_valid_and_holds_its_lines(tmp_path: Path) -> None:
    series = {"a < b": [(0.0, 1.0), (1.0, 2.0)], "flat": [(0.0, 1.5), (1.0, 1.5)]}
    path = draw_lines(tmp_path / "new" / "f.svg", "T & T", series, ("x", "y"), {"E": 0.5})
    root = ElementTree.parse(path).getroot()
    tag = "{http://www.w3.org/2000/svg}"
    lines = [each.get("points", "").split() for each in root.iter(f"{tag}polyline")]
    places = [[tuple(map(float, p.split(","))) for p in line] for line in lines]
    assert places[0] == [(70.0, 350.0), (620.0, 50.0)]  # corner to corner
    assert places[1][0][1] == places[1][1][1] == 200.0
    texts = [each.text for each in root.iter(f"{tag}text")]
    assert {"T & T", "a < b", "flat", "x", "y", "E"} <= set(texts)


def test_axes_have_round_numbers(tmp_path: Path) -> None:
    path = draw_lines(tmp_path / "f.svg", "", {"a": [(0.05, 0.0), (6.95, 0.773)]}, ("", ""))
    texts = [each.text for each in ElementTree.parse(path).getroot().iter() if each.text]
    assert {"0", "7", "0.1", "0.8"} <= set(texts) and "0.773" not in texts


@pytest.mark.parametrize("series", [{}, {"one": [(3.0, 3.0)]}])
def test_little_to_draw_is_no_error(
    tmp_path: Path, series: dict[str, list[tuple[float, float]]]
) -> None:
    assert draw_lines(tmp_path / "f.svg", "", series, ("", "")).exists()


def test_a_density_has_area_one() -> None:
    points = histogram_points([0, 0.5, 1, 1.5], [1, 2, 1])
    assert points == [(0.25, 0.5), (0.75, 1.0), (1.25, 0.5)]
    assert sum(0.5 * y for _, y in points) == 1
    assert histogram_points([0, 1, 2, 3, 4], [3, 0, 0, 0]) == [(0.5, 1.0), (1.5, 0.0)]


@pytest.mark.parametrize(("heights", "anchor"), [((1.0, 9.0), "start"), ((9.0, 1.0), "end")])
def test_names_stand_where_the_lines_are_low(
    tmp_path: Path, heights: tuple[float, float], anchor: str
) -> None:
    """The losses of right labels pile up on the left, where the names would lie on them."""
    points = [(0.0, heights[0]), (5.0, 0.0), (10.0, heights[1])]
    path = draw_lines(tmp_path / "f.svg", "", {"the name": points}, ("", ""))
    texts = {each.text: each for each in ElementTree.parse(path).getroot().iter()}
    assert texts["the name"].get("text-anchor") == anchor
