from __future__ import annotations

import re

import numpy as np

from oddly.plane import Plane
from oddly.report.charts import draw_bars, draw_histogram, find_root_steps
from oddly.report.histogram import bin_scores
from tests.report.tables import make_verdicts


def test_counts_on_a_root_scale_have_one_digit() -> None:
    assert find_root_steps(539) == [0, 30, 100, 300, 500]
    assert find_root_steps(1) == [0, 1]
    assert find_root_steps(165) == [0, 10, 40, 90]  # 100 would touch 90


def test_bars_worked_by_hand() -> None:
    plane = Plane(166, 180, (0, 2), (0, 4))  # 50 pixels a unit to the right, 25 a count upwards
    path = draw_bars(np.asarray([4, 0]), np.asarray([0.0, 1.0, 2.0]), plane)
    assert path == "M52.0,140V40.0H101.83V140Z"
    assert draw_bars(np.asarray([0, 2]), np.asarray([0.0, 1.0, 2.0]), plane).startswith("M102.0,")


def test_spared_examples_are_drawn_as_kept() -> None:
    verdicts = make_verdicts(
        [0.0, 1.0, 2.0, 3.0], threshold=[1.5] * 4, keep=[True, True, True, False]
    )
    histogram = bin_scores(verdicts, None)
    assert histogram
    chart = draw_histogram(histogram, 920, "x")
    assert len(re.findall("M", chart.filled)) == 4
    assert len(re.findall("M", chart.spared)) == 1
    assert sum(bar.text.startswith("1 ") for bar in chart.bars) == 4
