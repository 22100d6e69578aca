"""The page in a real Chromium: decide with keys, kill the server, start again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oddly.records import Run
from oddly.review.session import Session
from tests.review.browser import open_link, press, see, see_cards, see_each
from tests.review.conftest import Serve, Site, paint, write_run
from tests.review.process import Server

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

NASTY = "<img src=x onerror=alert(1)>.png"
WORST_CLASS = "<b onmouseover=alert(2)>bold</b>"


def test_decide_with_keys_kill_the_server_go_on(
    run: Run, page: Page, complaints: list[str]
) -> None:
    with Server(run.path) as server:
        page.goto(server.link)
        see(page, "#name", "cat/0.png")
        assert page.locator("#doubt").is_hidden()
        assert page.url == f"http://127.0.0.1:{server.port}/"  # the token is gone from it
        see(page, "#given", "cat")
        see(page, "#suggested", "dog")
        press(page, "k", "1 of 6 decided")
        see(page, "#name", "dog/1.png")
        press(page, "s", "2 of 6 decided")
        press(page, "r", "3 of 6 decided")
        press(page, "n", "3 of 6 decided · 1 skipped")
        see(page, "#name", "dog/4.png")
        server.kill()
        assert complaints == []
        page.keyboard.press("k")
        see(
            page,
            "#notice",
            re.compile("Cannot reach the server, so your last choice was not saved"),
        )
        see(page, "#count", "3 of 6 decided · 1 skipped")
        complaints.clear()  # Chromium itself remarks on the refused connection
    with Server(run.path) as server:
        page.goto(server.link)
        see(page, "#name", "dog/4.png")
        see(page, "#count", "3 of 6 decided · 1 skipped")
        page.keyboard.press("u")
        see(page, "#foreign-text", "cat/3.png: Skipped")  # before this start of the server
        press(page, "Enter", "3 of 6 decided")
        see(page, "#name", "cat/3.png")
        page.keyboard.press("ArrowLeft")
        see(page, "#standing", "Removed")
        page.keyboard.press("ArrowLeft")
        see(page, "#standing", "Changed to “emu”")
    assert complaints == []


def test_another_class_by_typing(site: Site, page: Page, complaints: list[str]) -> None:
    open_link(page, site)
    page.keyboard.press("c")
    page.wait_for_selector("#choose[open]")
    see_each(page, "#found li", ["cat", "dog", "emu"])
    page.keyboard.type("em")
    see(page, "#found li", "emu")
    press(page, "Enter", "1 of 6 decided")
    assert site.client.get("/api/suspect/0").json()["card"]["label"] == "emu"
    page.keyboard.press("c")
    page.wait_for_selector("#choose[open]")
    page.keyboard.press("k")  # typed, not decided
    see(page, "#found-count", re.compile("^No such class. .* add the class to your data"))
    page.keyboard.press("Escape")
    see(page, "#count", "1 of 6 decided")
    assert complaints == []


def test_a_tab_that_comes_late_sees_what_stands(
    site: Site, page: Page, complaints: list[str]
) -> None:
    open_link(page, site)
    site.decide(0, "remove").raise_for_status()
    page.keyboard.press("k")
    see(page, "#notice", re.compile("decided in another tab.*not saved"))
    see(page, "#standing", "Removed")
    assert site.client.get("/api/suspect/0").json()["card"]["action"] == "remove"
    page.keyboard.press("k")  # now knowingly
    see(page, "#name", "dog/1.png")  # the count says nothing here: it stood at 1 before
    see(page, "#count", "1 of 6 decided")
    assert site.client.get("/api/suspect/0").json()["card"]["action"] == "keep"
    # Chromium itself remarks on the 409
    assert [line for line in complaints if "409" not in line] == []


def test_the_grid_and_the_end(site: Site, page: Page, complaints: list[str]) -> None:
    open_link(page, site)
    page.keyboard.press("g")
    page.wait_for_selector("#cards li >> nth=5")
    for decided, key in enumerate("rkskr", start=1):
        press(page, key, f"{decided} of 6 decided")
    badges = ["Removed", "Kept as “dog”", "Changed to “cat”", "Kept as “cat”", "Removed"]
    see_each(page, ".badge", badges)
    press(page, "u", "4 of 6 decided")
    page.select_option("#show", "decided")
    see_cards(page, 4)
    page.keyboard.press("g")
    see(page, "#rank", "1 of 6")
    page.click("#view-grid")
    see_cards(page, 2)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    see(page, "#name", "emu/5.png")
    press(page, "n", "4 of 6 decided · 1 skipped")
    see(page, "#name", "dog/4.png")
    press(page, "r", "5 of 6 decided · 1 skipped")
    see(page, "#done-title", "First pass finished")
    page.click("#done-skipped")
    see(page, "#name", "emu/5.png")
    press(page, "k", "6 of 6 decided")
    see(page, "#done-title", "All decided")
    see(page, "#done-next", re.compile("oddly apply .*run"))
    assert complaints == []


@pytest.fixture
def nasty_site(tmp_path: Path, serve: Serve) -> Iterator[Site]:
    paint(tmp_path / "photos" / NASTY)
    names = [WORST_CLASS, "“quoted” & <i>"]
    session = Session(write_run(tmp_path / "run", [NASTY], tmp_path / "photos", class_names=names))
    yield serve(session)
    session.decisions.close()


def test_a_key_right_after_a_dialog_is_not_lost(
    nasty_site: Site, page: Page, complaints: list[str]
) -> None:
    open_link(page, nasty_site)
    page.keyboard.press("c")
    page.wait_for_selector("#choose", state="visible")
    page.locator("#search").dispatch_event("keydown", {"key": "g", "bubbles": True})  # typed there
    page.keyboard.press("Escape")
    page.wait_for_selector("#choose", state="hidden")
    assert page.locator("#grid").is_hidden()
    page.locator("#search").dispatch_event("keydown", {"key": "g", "bubbles": True})
    see_cards(page, 1)


def test_names_are_text_whatever_they_say(
    nasty_site: Site, page: Page, complaints: list[str]
) -> None:
    open_link(page, nasty_site)
    see(page, "#name", NASTY)
    see(page, "#given", WORST_CLASS)
    width = "async image => (await image.decode(), image.naturalWidth)"
    assert page.locator("#picture").evaluate(width) == 8
    page.keyboard.press("c")
    see(page, "#found li >> nth=0", WORST_CLASS)
    page.keyboard.press("Escape")
    page.wait_for_selector("#choose", state="hidden")
    page.keyboard.press("g")
    see(page, "#cards .caption", f"{WORST_CLASS} → “quoted” & <i>")
    press(page, "s", "1 of 1 decided")
    assert page.locator("img[src='x'], main b[onmouseover], main i").count() == 0
    assert complaints == []


@pytest.mark.parametrize("confidence", [0.9, math.nan])
def test_an_unknown_confidence_has_no_meter(
    confidence: float, tmp_path: Path, serve: Serve, page: Page
) -> None:
    paint(tmp_path / "photos" / "a.png")
    session = Session(
        write_run(tmp_path / "run", ["a.png"], tmp_path / "photos", confidence=confidence)
    )
    open_link(page, serve(session))
    see(page, "#suggested", "dog")
    known = not math.isnan(confidence)
    see(page, "#confidence", "(90\xa0%)" if known else "")
    expect(page.locator("#meter")).to_be_visible(visible=known)
    session.decisions.close()


@pytest.mark.parametrize("predicted", [True, False])
def test_only_a_network_that_was_asked_is_said_to_agree(
    predicted: bool, tmp_path: Path, serve: Serve, page: Page
) -> None:
    paint(tmp_path / "photos" / "a.png")
    shape: dict[str, Any] = {"class_names": ["cat"], "predicted": predicted}
    session = Session(write_run(tmp_path / "run", ["a.png"], tmp_path / "photos", **shape))
    open_link(page, serve(session))
    agrees = ". The final network agrees with the label." if predicted else ""
    see(page, "#words", re.compile(f"random labels{agrees}$"))
    assert page.locator('[data-action="suggestion"]').is_hidden()
    session.decisions.close()


def test_a_screen_reader_hears_the_next_suspect(site: Site, page: Page) -> None:
    open_link(page, site)
    see(
        page,
        "#live",
        re.compile("^Suspect 1 of 6: given label cat, network’s guess dog \\(90\xa0%\\)"),
    )
    press(page, "k", "1 of 6 decided")
    see(page, "#live", re.compile("^Suspect 2 of 6: given label dog"))
    expect(page.locator("#picture")).to_have_attribute("alt", "Picture dog/1.png")
    order = []
    for _ in range(11):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.innerText.trim().split('\\n').pop()"))
    assert [text.split()[0] for text in order[3:8]] == [
        "Keep",
        "Change",
        "Other",
        "Remove",
        "Skip",
    ]


def test_keys_can_be_switched_off(site: Site, page: Page, complaints: list[str]) -> None:
    open_link(page, site)
    page.keyboard.press("?")
    page.uncheck("#keys-on")
    page.click("#keys button")
    page.keyboard.press("r")
    page.click("[data-action=keep]")
    see(page, "#count", "1 of 6 decided")
    assert site.client.get("/api/suspect/0").json()["card"]["action"] == "keep"
    assert complaints == []
