"""The page on a phone, by finger, in the dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from oddly.review.session import Session
from tests.review.browser import open_link, press, see
from tests.review.conftest import Serve, Site, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def contrast(page: Page, selector: str) -> float:
    """WCAG contrast of an element's text with what lies behind it."""
    script: Any = """element => {
      const read = (colour) => colour.match(/[\\d.]+/g).map(Number);
      let behind = element;
      while (behind && (read(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0)
        behind = behind.parentElement;
      const light = (colour) => { const [r, g, b] = read(colour).map((c) => {
        c /= 255; return c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; });
        return .2126 * r + .7152 * g + .0722 * b; };
      const [a, b] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor]
        .map(light).sort((x, y) => y - x);
      return (a + .05) / (b + .05); }"""
    return float(page.locator(selector).first.evaluate(script))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_narrow_dark_and_readable(site: Site, page: Page, scheme: Any, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    open_link(page, site)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    texts = ("#given", "#suggested", "#words", "#count", "#name", "#confidence", ".brand")
    buttons = ("[data-action=keep]", "[data-action=suggestion]", "[data-action=suggestion] kbd")
    for selector in (*texts, *buttons, "[data-action=keep] kbd"):
        assert contrast(page, selector) >= 4.5, selector
    if width == 390:  # every button without scrolling sideways, large enough for a thumb
        for box in [b.bounding_box() for b in page.locator(".actions button").all()]:
            assert box and box["height"] >= 44 and box["x"] >= 0
            assert box["x"] + box["width"] <= width and box["y"] + box["height"] <= 844
    page.keyboard.press("g")
    page.wait_for_selector("#cards li")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    press(page, "r", "1 of 6 decided")
    assert contrast(page, ".badge") >= 4.5 and contrast(page, ".caption b") >= 4.5


@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390), (1280, 500)])
def test_every_button_is_in_sight_upright_and_sideways(
    site: Site, page: Page, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    open_link(page, site)
    press(page, "n", "0 of 6 decided · 1 skipped")  # the longest words beside the progress
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in [b.bounding_box() for b in page.locator("#one button, #picture").all()]:
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width
        assert box["y"] >= 0 and box["y"] + box["height"] <= height


def test_a_doubt_stands_above_every_suspect_until_it_is_hidden(
    tmp_path: Path, photos: Path, serve: Serve, page: Page, complaints: list[str]
) -> None:
    ids = [f"cat/{i}.png" for i in (0, 3, 6)]
    doubt = "<b>look</b> before you trust it, " + "and then look again, " * 9
    run = write_run(tmp_path / "doubted", ids, photos, doubt=doubt)
    page.set_viewport_size({"width": 390, "height": 844})
    open_link(page, serve(Session(run)))
    see(page, "#doubt-text", re.compile("^<b>look</b> before you trust it, .*"))
    press(page, "k", "1 of 3 decided")
    expect(page.locator("#doubt")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator("#doubt").bounding_box()
    assert box and box["height"] < 50  # one line, and every button still in sight
    for box in [b.bounding_box() for b in page.locator(".actions button").all()]:
        assert box and box["y"] + box["height"] <= 844
    page.click("#doubt-more")
    text = "p => p.scrollWidth <= p.clientWidth && p.scrollHeight <= p.clientHeight"
    assert page.locator("#doubt-text").evaluate(text)
    page.click("#doubt-close")
    expect(page.locator("#doubt")).to_be_hidden()
    press(page, "k", "2 of 3 decided")
    expect(page.locator("#doubt")).to_be_hidden()
    assert complaints == []


def test_a_card_of_the_grid_is_opened_and_decided_by_finger(site: Site, chromium: Browser) -> None:
    size: Any = {"width": 390, "height": 844}
    context = chromium.new_context(viewport=size, has_touch=True, is_mobile=True)
    page = context.new_page()
    open_link(page, site)
    page.tap("#view-grid")
    page.tap("#cards li >> nth=3 >> button")
    see(page, "#name", "cat/3.png")
    page.tap("[data-action=remove]")
    see(page, "#count", "1 of 6 decided")
    assert site.client.get("/api/suspect/3").json()["card"]["action"] == "remove"
    context.close()


def test_another_class_can_be_called_off_by_finger(site: Site, chromium: Browser) -> None:
    size: Any = {"width": 390, "height": 844}
    context = chromium.new_context(viewport=size, has_touch=True, is_mobile=True)
    page = context.new_page()
    open_link(page, site)
    page.tap("[data-action=choose]")
    expect(page.locator("#choose")).to_be_visible()
    expect(page.locator("#choose-keys")).to_be_hidden()  # nothing about keys that are not there
    page.tap("#choose button")
    expect(page.locator("#choose")).to_be_hidden()
    see(page, "#count", "0 of 6 decided")
    context.close()


def test_the_list_of_keys_names_them_on_a_tablet_too(site: Site, chromium: Browser) -> None:
    context = chromium.new_context(has_touch=True, is_mobile=True)
    page = context.new_page()
    open_link(page, site)
    expect(page.locator("[data-action=keep] kbd")).to_be_hidden()
    page.tap("#show-keys")
    expect(page.locator("#keys kbd").first).to_be_visible()
    context.close()
