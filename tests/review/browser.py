"""What tests of the page do in a browser again and again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.review.conftest import TOKEN, Site

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect
expect.set_options(timeout=20_000)  # milliseconds: other tests use the processor too


def open_link(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?token={TOKEN}")
    page.wait_for_selector("#one:not([hidden])")
    wait_for_pictures(page)


def wait_until(page: Page, condition: str) -> None:
    """As Playwright's own, which the page's policy forbids to evaluate texts."""
    for _ in range(1000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"never so: {condition}")


def wait_for_pictures(page: Page) -> None:
    """Until then nothing can be decided."""
    there = "i => i.complete || !i.parentElement.checkVisibility()"
    wait_until(page, f"[...document.images].every({there})")


def press(page: Page, key: str, count: str) -> None:
    """A key, once the pictures are there, and the progress it must lead to."""
    wait_for_pictures(page)
    page.keyboard.press(key)
    expect(page.locator("#count")).to_have_text(count)


def see(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    expect(page.locator(selector)).to_have_text(text)


def see_each(page: Page, selector: str, texts: list[str]) -> None:
    expect(page.locator(selector)).to_have_text(texts)


def see_cards(page: Page, number: int) -> None:
    expect(page.locator("#cards li")).to_have_count(number)
