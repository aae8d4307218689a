"""A real browser for tests: the Chromium of this machine, driven by Playwright."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 180_000
"""Milliseconds: the machine is busy."""


def chromium() -> str | None:
    """The path of a Chromium: $CHROMIUM, one on PATH, or the one that Playwright has downloaded."""
    if named := os.environ.get("CHROMIUM"):
        return named
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@contextlib.contextmanager
def browser_page() -> Iterator[Page]:
    """An empty page; skips the test, with CI fails it, where there is no Chromium."""
    path = chromium()
    if path is None:
        words = "there is no Chromium: install one, or run `playwright install chromium`, or name it in $CHROMIUM"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(words)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.set_default_navigation_timeout(PATIENCE)
        try:
            yield page
        finally:
            browser.close()
