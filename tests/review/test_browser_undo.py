"""What an undo takes back, and where the next key then acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.review.browser import open_link, press, see, wait_for_pictures
from tests.review.conftest import Site

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def standing(site: Site, rank: int) -> str | None:
    action: str | None = site.client.get(f"/api/suspect/{rank}").json()["card"]["action"]
    return action


def open_grid(page: Page, site: Site) -> None:
    open_link(page, site)
    page.keyboard.press("g")
    page.wait_for_selector("#cards li >> nth=5")
    wait_for_pictures(page)


def test_after_an_undo_in_the_grid_the_key_acts_on_that_card(site: Site, page: Page) -> None:
    open_grid(page, site)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    press(page, "r", "1 of 6 decided")
    press(page, "u", "0 of 6 decided")
    press(page, "k", "1 of 6 decided")
    assert [standing(site, rank) for rank in (0, 3, 4)] == [None, "keep", None]


def test_an_undo_of_a_card_on_no_page_leaves_the_focus_alone(site: Site, page: Page) -> None:
    open_grid(page, site)
    for decided in (1, 2):
        press(page, "r", f"{decided} of 6 decided")
    page.select_option("#show", "skipped")  # none
    page.select_option("#show", "open")
    expect(page.locator("#cards li")).to_have_count(4)
    page.keyboard.press("ArrowRight")
    page.evaluate("grid.starts = [2]")  # as on a second page
    press(page, "u", "1 of 6 decided")
    see(page, "#hint", "Undone, but not on this page: dog/1.png")
    press(page, "k", "2 of 6 decided")
    assert [standing(site, rank) for rank in (0, 1, 2, 3)] == ["remove", None, None, "keep"]


def test_a_reload_forgets_no_decision_of_this_tab(site: Site, page: Page) -> None:
    open_link(page, site)
    press(page, "k", "1 of 6 decided")
    site.decide(3, "remove").raise_for_status()  # another tab, later
    page.reload()
    see(page, "#count", "2 of 6 decided")
    press(page, "u", "1 of 6 decided")
    assert [standing(site, rank) for rank in (0, 3)] == [None, "remove"]


def test_another_tabs_decision_is_undone_only_after_a_question(
    site: Site, page: Page, complaints: list[str]
) -> None:
    site.decide(3, "remove").raise_for_status()
    open_link(page, site)
    page.keyboard.press("u")
    see(page, "#foreign-text", "cat/3.png: Removed")
    page.keyboard.press("Escape")
    expect(page.locator("#foreign")).to_be_hidden()
    assert standing(site, 3) == "remove"
    page.click("#undo")
    page.click("#foreign-undo")
    see(page, "#count", "0 of 6 decided")
    see(page, "#name", "cat/3.png")
    assert standing(site, 3) is None
    assert complaints == []


def test_what_another_tab_decided_likewise_stays_its_own(site: Site, page: Page) -> None:
    open_link(page, site)
    site.decide(0, "keep").raise_for_status()  # while this tab looks at it
    press(page, "k", "1 of 6 decided")
    page.keyboard.press("u")
    see(page, "#foreign-text", "cat/0.png: Kept as “cat”")
    assert standing(site, 0) == "keep"


def test_an_undo_that_failed_can_be_tried_again(site: Site, page: Page) -> None:
    open_link(page, site)
    press(page, "k", "1 of 6 decided")
    site.decide(3, "remove").raise_for_status()
    page.keyboard.press("ArrowRight")
    see(page, "#count", "2 of 6 decided")  # it knows of both

    def fail(route: Route) -> None:
        route.fulfill(status=503, json={"error": "nothing was saved: disk full"})

    page.route("**/api/undo", fail)
    page.keyboard.press("u")
    see(page, "#notice", "nothing was saved: disk full")
    page.unroute("**/api/undo")
    page.keyboard.press("u")
    see(page, "#name", "cat/0.png")
    assert [standing(site, rank) for rank in (0, 3)] == [None, "remove"]
