"""The page: valid by itself, with every method in table and picture."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from oddly.compare.page import draw, render
from oddly.compare.table import FIGURES


def row(method: str, accuracy: float | None, failure: str | None = None) -> dict[str, Any]:
    figures = {name: {"mean": accuracy, "std": 1.0, "values": []} for name in FIGURES}
    if accuracy is None:
        figures = {name: {"mean": None, "std": None, "values": []} for name in FIGURES}
    return {"method": method, "passes": 3, "cost": 1.0, "failure": failure, **figures}


RESULT = {
    "plan": {
        "data": "<digits>",
        "seeds": 3,
        "epochs": 40,
        "equal_cost": False,
        "options": {"noise": 0.4},
    },
    "rows": [row("erm", 80.0), row("odd", 95.0), row("dmi", None, "too <many> classes")],
}


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "line", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "circle"):
            assert self.open.pop() == tag


def test_the_page_is_whole_and_escaped() -> None:
    page = render(RESULT)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == [] and "<digits>" not in page and "too &lt;many&gt; classes" in page
    assert "http" not in page  # nothing is fetched
    assert "3 methods, 3 seeds, 40 epochs requested; noise 0.4. Mean" in page


def test_doubts_and_failures_are_listed_where_there_are_any() -> None:
    doubted = {**row("odd", 50.0), "doubt": "1 of 1 verdict: contrast < 6.5."}
    page = render({**RESULT, "rows": [row("erm", 80.0), doubted]})
    assert (
        "<h2>Unreliable verdicts</h2><ul><li>odd: 1 of 1 verdict: contrast &lt; 6.5.</li>" in page
    )
    assert "Failed" not in page and "Unreliable verdicts" not in render(RESULT)


def test_what_the_figures_mean_and_leave_out_is_told_above_them() -> None:
    caveat = (
        "test accuracy is measured on the given labels of 9 held-out images, including wrong ones"
    )
    page = render({**RESULT, "caveat": caveat, "left_out": "not shown (gce-0)"})
    assert f"<p>T{caveat[1:]}.</p><p>Not shown (gce-0).</p><h2>Test accuracy</h2><div><svg" in page
    alone = render({**RESULT, "rows": [row("dmi", None, "no accuracy")], "caveat": caveat})
    assert f"<p>T{caveat[1:]}.</p><h2>All figures" in alone  # also without a picture


def test_no_heading_stands_over_nothing() -> None:
    page = render({**RESULT, "rows": [row("dmi", None, "too many classes")]})
    assert "Test accuracy" not in page and "<h2>All figures</h2>" in page


def test_what_is_missing_and_what_was_trained() -> None:
    plan = {**RESULT["plan"], "seeds": 1}  # type: ignore[dict-item]
    page = render({**RESULT, "plan": plan, "training": {"model": "resnet8"}, "missing": 2})
    assert "1 seed, 40 epochs requested (2 runs still missing); model resnet8, noise" in page


def test_one_of_each_is_no_plural() -> None:
    plan = {**RESULT["plan"], "seeds": 1, "epochs": 1}  # type: ignore[dict-item]
    page = render({**RESULT, "plan": plan, "rows": [row("erm", 80.0)], "missing": 1})
    assert "<p>1 method, 1 seed, 1 epoch requested (1 run still missing); noise" in page
    page = render({**RESULT, "plan": {**plan, "equal_cost": True}, "rows": []})
    assert "1 seed, 1 pass over the data each; noise" in page


def test_the_picture_is_in_order_and_in_scale() -> None:
    picture = draw(RESULT["rows"])  # type: ignore[arg-type]
    assert picture.index("odd") < picture.index("erm") and picture.count("<circle") == 2
    # from 79 to 96 over 480 units: 95 lies at 190 + 16 x 480 / 17
    assert f'cx="{190 + 16 * 480 / 17:.1f}"' in picture
    assert draw([row("dmi", None)]) == ""
