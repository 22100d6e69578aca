"""No picture stands under another one's labels, and none is decided on before it is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.review.browser import open_link, press, see, wait_until
from tests.review.conftest import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture
def held(page: Page) -> Iterator[list[Route]]:
    """Requests for pictures beyond the first four: they wait for `free`."""
    waiting: list[Route] = []
    page.route(re.compile("/image/[45]"), lambda route: waiting.append(route))
    yield waiting
    free(waiting)


def free(waiting: list[Route]) -> None:
    while waiting:
        with suppress(Exception):  # of a tab that is closed
            waiting.pop().continue_()


def open_fifth(page: Page, site: Site) -> None:
    open_link(page, site)
    page.evaluate("look(4)")
    see(page, "#rank", "5 of 6")


@pytest.mark.parametrize("key", "ksrc")
def test_nothing_is_decided_on_a_picture_that_still_loads(
    key: str, site: Site, page: Page, held: list[Route], complaints: list[str]
) -> None:
    open_fifth(page, site)
    expect(page.locator("#picture")).to_be_hidden()  # neither this one nor the one before
    see(page, "#loading", "Loading the picture …")
    page.keyboard.press(key)
    see(page, "#hint", "Not decided: the picture is still loading.")
    page.click("[data-action=remove]")
    assert page.locator("#choose").is_hidden()
    assert site.client.get("/api/start").json()["progress"]["decided"] == 0
    free(held)
    expect(page.locator("#picture")).to_be_visible()
    expect(page.locator("#loading")).to_be_hidden()
    press(page, "r", "1 of 6 decided")
    assert site.client.get("/api/suspect/4").json()["card"]["action"] == "remove"
    assert complaints == []


def test_one_may_go_on_while_a_picture_loads(site: Site, page: Page, held: list[Route]) -> None:
    open_fifth(page, site)
    page.keyboard.press("ArrowLeft")
    see(page, "#rank", "4 of 6")
    expect(page.locator("#picture")).to_be_visible()
    page.keyboard.press("ArrowRight")
    see(page, "#rank", "5 of 6")
    expect(page.locator("#picture")).to_be_hidden()
    page.keyboard.press("n")
    see(page, "#count", "0 of 6 decided · 1 skipped")


def test_a_picture_that_cannot_be_loaded_says_so_and_can_be_decided_on(
    site: Site, page: Page
) -> None:
    page.route(re.compile("/image/"), lambda route: route.abort())
    open_link(page, site)
    see(page, "#loading", "The picture could not be loaded.")
    press(page, "r", "1 of 6 decided")


def test_a_prefetched_picture_is_there_at_once(site: Site, page: Page) -> None:
    """No frame without a picture, and no key that is lost."""
    open_link(page, site)
    wait_until(page, "ahead.length === 3 && ahead.every(i => i.complete)")
    page.evaluate("""() => {
        window.gaps = 0;
        new MutationObserver(() => { gaps += $("picture").hidden; })
            .observe($("one"), { subtree: true, childList: true, attributes: true });
    }""")
    for decided in (1, 2, 3):
        page.keyboard.press("k")
        see(page, "#count", f"{decided} of 6 decided")
    assert page.evaluate("gaps") == 0


def test_a_key_that_comes_too_early_is_told_so(site: Site, page: Page) -> None:
    open_link(page, site)
    waiting: list[Route] = []
    page.route("**/api/decide", lambda route: waiting.append(route))
    page.keyboard.press("k")
    page.keyboard.press("k")
    see(page, "#hint", "Not decided: the previous key is still being processed.")
    page.wait_for_timeout(50)
    assert len(waiting) == 1
    free(waiting)
    see(page, "#count", "1 of 6 decided")


def test_the_grid_waits_for_the_picture_too(site: Site, page: Page, held: list[Route]) -> None:
    open_link(page, site)
    page.keyboard.press("g")
    page.wait_for_selector("#cards li >> nth=5")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("r")
    see(page, "#hint", "Not decided: the picture is still loading.")
    free(held)
    press(page, "r", "1 of 6 decided")
    assert site.client.get("/api/suspect/4").json()["card"]["action"] == "remove"
