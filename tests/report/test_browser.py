"""The page in a real browser, opened from disk, as a person uses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from oddly.pictures import from_pixels, shrink
from oddly.records import Run, RunWriter, VerdictTable, choose_pictured
from oddly.report import write_report
from tests.report.conftest import NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

EVIL = "<img src=x onerror=alert(1)>"
Open = Callable[..., "Page"]


@pytest.fixture
def run(made_up_run: Callable[..., Run]) -> Run:
    """A made-up run whose suspects and kept examples have pictures, but for a few."""
    run = made_up_run()
    keep, scores = run.verdicts["keep"].to_numpy(), run.verdicts["score"].to_numpy()
    suspects, kept = choose_pictured(keep, scores)
    rng = np.random.default_rng(0)
    pictures = {
        int(i): shrink(from_pixels(rng.integers(0, 256, (3, 40, 30), dtype=np.uint8)))
        for i in (*suspects[2:], *kept)
    }
    RunWriter(run.path).write_thumbnails(pictures)
    return Run(run.path)


def centre(slider: Locator) -> tuple[float, float]:
    """Where its knob is, once it is in view."""
    slider.scroll_into_view_if_needed()
    box = slider.locator(".knob").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def number(locator: Locator) -> float:
    return float(locator.inner_text().replace(",", "").replace("−", "-").split()[0].rstrip("\xa0%"))


def counted(run: Run, threshold: float) -> int:
    return int((run.verdicts["score"].to_numpy(np.float64) >= threshold).sum())


def check_counts(page: Page, run: Run) -> float:
    """The numbers below the histogram are those of the tables; returns the threshold."""
    whatif = page.evaluate("whatif")
    at = page.evaluate("at")
    threshold = whatif["thresholds"][at]
    suspects = number(page.locator("#at-suspects"))
    assert abs(suspects - counted(run, threshold)) <= 1  # a score may lie on the line
    assert run.truth is not None
    wrong = run.truth["mislabelled"].to_numpy()
    hits = (wrong & (run.verdicts["score"].to_numpy(np.float64) >= threshold)).sum()
    assert number(page.locator("#at-precision")) == pytest.approx(100 * hits / suspects, abs=0.3)
    assert number(page.locator("#at-recall")) == pytest.approx(100 * hits / wrong.sum(), abs=0.3)
    return float(threshold)


def test_the_threshold_is_dragged(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run))
    slider = page.get_by_role("slider", name="Threshold")
    own = check_counts(page, run)
    assert own == pytest.approx(run.summary["threshold"])
    before = page.locator("#at-suspects").inner_text()
    x, y = centre(slider)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    raised = check_counts(page, run)
    assert raised > own
    page.mouse.move(x + 120, y + 40, steps=4)
    page.mouse.up()
    assert check_counts(page, run) > raised
    assert slider.get_attribute("aria-valuetext") == (
        f"{page.locator('#at-threshold').inner_text()}:"
        f" {page.locator('#at-suspects').inner_text()} suspects,"
        f" {page.locator('#at-share').inner_text()}"
    )
    # the gallery follows
    left = page.locator("#at-suspects").inner_text()
    page.wait_for_function(
        "n => document.getElementById('found').textContent.startsWith(n)", arg=left
    )
    page.mouse.move(x, y)  # a pointer that is not pressed moves nothing
    assert page.locator("#at-suspects").inner_text() == left
    page.get_by_role("button", name="Reset to the run’s threshold").click()
    assert page.locator("#at-suspects").inner_text() == before


def test_the_threshold_is_dragged_by_a_finger(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run), 390, 844, has_touch=True, is_mobile=True)
    slider = page.get_by_role("slider", name="Threshold")
    x, y = centre(slider)
    session = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 20, "y": y}]),
        ("touchMove", [{"x": x + 70, "y": y}]),
        ("touchEnd", []),
    ):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert check_counts(page, run) > run.summary["threshold"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_threshold_is_moved_by_keys(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run))
    page.keyboard.press("t")
    slider = page.get_by_role("slider", name="Threshold")
    assert slider.evaluate("element => element === document.activeElement")
    start = int(slider.get_attribute("aria-valuenow") or -1)
    for key, expected in (
        ("ArrowRight", start + 1),
        ("ArrowLeft", start),
        ("ArrowDown", start - 1),
        ("PageUp", start + 9),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("End", int(slider.get_attribute("aria-valuemax") or -1)),
    ):
        page.keyboard.press(key)
        assert int(slider.get_attribute("aria-valuenow") or -1) == expected
    page.keyboard.press("Escape")
    assert check_counts(page, run) == pytest.approx(run.summary["threshold"])


def cards(page: Page) -> list[str]:
    # Cards have a text only once the browser has found them in view, which takes it a frame.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.locator("#suspect-list .open").all_inner_texts()


def test_filter_search_and_sort(run: Run, open_page: Open) -> None:
    from playwright.sync_api import expect

    page = open_page(write_report(run))
    suspects = run.verdicts[~run.verdicts["keep"]].sort_values("score", ascending=False)
    found = page.locator("#found")
    assert found.inner_text() == f"{len(suspects):,} suspects, 60 shown."
    assert suspects["id"].iloc[0].split("/")[1] in cards(page)[0]
    # by class
    name = "digit 3"
    few = suspects[suspects["given_name"] == name]
    page.get_by_label("Given label", exact=True).select_option(label=f"{name} ({len(few)})")
    assert found.inner_text().startswith(f"{len(few)} suspects (of ")
    assert all(card.startswith(name) or f"\n{name}\n" in card for card in cards(page))
    # by pair, also with a name that would be a tag
    pair = (suspects["given_name"] == EVIL) & (suspects["suggested_name"] == "digit 1")
    page.get_by_role("button", name="Show all", exact=True).click()
    page.get_by_label("Given → suggested").select_option(
        label=f"{EVIL} → digit 1 ({int(pair.sum())})"
    )
    assert len(cards(page)) == pair.sum() and EVIL in cards(page)[0]
    # by id, with the key that leads there
    page.get_by_role("button", name="Show all", exact=True).click()
    wanted = suspects["id"].iloc[-1]
    page.keyboard.press("/")
    page.keyboard.type(wanted.upper())
    assert len(cards(page)) == 1
    page.keyboard.type("no such id")
    assert found.inner_text() == "No suspects match."
    page.keyboard.press("Escape")
    assert found.inner_text().startswith(f"{len(suspects):,} suspects")
    # sorted the other way round
    page.get_by_label("Sort").select_option("rank-")
    first = page.locator("#suspect-list .open").first  # which may not be drawn at once
    expect(first).to_contain_text(wanted.split("/")[1])


def test_keys_in_the_gallery(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run))
    active = "document.activeElement.dataset.place"
    page.keyboard.press("j")
    assert page.evaluate(active) == "0"
    for key, place in (("j", "1"), ("ArrowRight", "2"), ("k", "1"), ("ArrowLeft", "0")):
        page.keyboard.press(key)
        assert page.evaluate(active) == place
    page.keyboard.press("ArrowDown")
    below = int(page.evaluate(active))
    assert 3 <= below <= 8
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    ids = page.evaluate("suspects.ids")
    assert ids[below] in dialog.inner_text()
    page.keyboard.press("ArrowRight")
    assert ids[below + 1] in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible() and page.evaluate(active) == str(below + 1)
    # one stop for Tab, however many cards
    assert page.locator("#suspect-list [tabindex='0']").count() == 1
    for _ in range(70):
        page.keyboard.press("j")
    assert page.evaluate(active) == str(below + 71)  # more cards came by themselves


def test_keys_do_not_overtake_the_gallery(run: Run, open_page: Open) -> None:
    """A gallery that still waits for the threshold to rest is brought up to date first."""
    page = open_page(write_report(run))
    page.keyboard.press("t")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    suspects = page.locator("#at-suspects").inner_text()
    assert f"1 of {suspects}" in page.get_by_role("dialog").inner_text()


def test_tables_lead_to_the_gallery(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run))
    link = page.get_by_role("button", name=re.compile(r"suspects labelled digit 2$"))
    count = int(link.inner_text())
    link.click()
    assert page.locator("#found").inner_text().startswith(f"{count} suspects (of ")
    cell = page.locator(".matrix button[data-given='4'][data-suggested='6']")
    pairs = int(cell.inner_text())
    cell.click()
    assert len(cards(page)) == pairs
    head = page.get_by_role("button", name="Given label", exact=True)
    head.click()
    head.click()
    rows = page.locator("table.sortable tbody th").all_inner_texts()
    assert rows == NAMES


def test_pictures_placeholders_and_names(run: Run, open_page: Open) -> None:
    page = open_page(write_report(run))
    page.locator("#suspects").scroll_into_view_if_needed()
    images = page.locator("#suspect-list img")
    images.nth(10).wait_for()
    assert page.locator("#suspect-list .none").count() == 2  # of the two without a picture
    for i in range(images.count()):
        assert images.nth(i).get_attribute("alt", timeout=1000)
    shape = images.first.evaluate(
        "async i => (await i.decode(), [i.naturalWidth, i.naturalHeight])"
    )
    assert shape == [30, 40]
    card = page.locator("#suspect-list .open").nth(2)
    name = card.evaluate("b => b.textContent")
    assert "given label: " in name and "suggested label: " in name and "true label: " in name
    page.locator("#kept").scroll_into_view_if_needed()
    page.locator("#kept-list img").first.wait_for()
    assert page.locator("#kept-list li").count() == 48
    assert page.locator("img[src='x']").count() == 0


@pytest.mark.parametrize("source", ["weights", "sentinels"])
def test_a_narrow_page_does_not_scroll_sideways(
    made_up_run: Callable[..., Run], open_page: Open, source: str
) -> None:
    page = open_page(write_report(made_up_run(source=source)), 390, 844, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("svg.narrow").is_visible() and not page.locator("svg.wide").is_visible()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(20, 23, 26)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(run: Run, open_page: Open, scheme: str) -> None:
    page = open_page(write_report(run), color_scheme=scheme)
    measure = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
    assert page.evaluate(measure.partition("\n")[2]) == []


def test_a_run_without_a_verdict(tmp_path: Path, open_page: Open) -> None:
    writer = RunWriter.create(tmp_path, {"method": "erm"}, {})
    labels, losses = np.arange(300) % 3, np.linspace(0, 5, 300)
    nothing = np.full(300, np.nan)
    writer.write_verdicts(
        VerdictTable(
            [f"{i}" for i in range(300)],
            *(labels, losses, losses, None, None, np.ones(300, bool), labels, nothing),
            ["a", "b", "c"],
        )
    )
    writer.finish({"method": "erm", "data": "x"})
    page = open_page(write_report(Run(tmp_path)))
    assert page.get_by_role("slider").count() == 0
    assert page.locator("#found").inner_text() == "200 images, 60 shown."
    assert cards(page)[0].endswith("299")


def test_an_unfinished_run(tmp_path: Path, open_page: Open) -> None:
    writer = RunWriter.create(tmp_path, {"method": "odd", "data": "x", "epochs": 9}, {})
    writer.append_metrics({"epoch": 1, "lr": 0.1, "train_loss": 2.0, "test_accuracy": None})
    page = open_page(write_report(Run(tmp_path)))
    assert "Not finished: 1 of 9 epochs so far." in page.locator("main").inner_text()
