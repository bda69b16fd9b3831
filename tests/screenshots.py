"""Takes the pictures of docs/img: the demo's own page in Chromium, on a phone and on a desk.

``make screenshots`` plays `food_switch` through real processes, opens the page it serves and
keeps three pages at two widths, each cut to what a reader needs. A picture over 200 kB is an
error: the repository is no picture book.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "img"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MOST_BYTES = 200_000
_HEIGHTS = {"phone": (360, 1_000), "desk": (1_100, 900)}
"""Width of the window, and how much of a page is kept, in px."""
_PAGES = {"front": "/", "answer": "/answer/1", "trend": "/series/max.scratching"}
_LEAVE_S = 10
_MARGIN = 24
_BELOW = 8
_BLOCKS = "main h1, main p, main figure, main li, main form, article"
_ENDS = """blocks => blocks.map(one => one.getBoundingClientRect().bottom)"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def demo() -> Iterator[str]:
    """The address of a demo's page, served from when its question is answered until the end."""
    port = _free_port()
    command = [sys.executable, "-m", "gateway", "demo", "--web-port", str(port), "--mqtt-port", str(_free_port())]
    playing = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert playing.stdout is not None
    try:
        for line in playing.stdout:
            if "this answer: " in line:
                break
        else:
            raise AssertionError(f"the demo must serve its page, ended with status {playing.wait()}")
        yield f"http://127.0.0.1:{port}"
    finally:
        playing.send_signal(signal.SIGINT)
        playing.wait(_LEAVE_S)


def take(browser: Browser, address: str, name: str, size: str) -> Path:
    """One picture: the page's column, from its top to the last paragraph that fits whole."""
    width, height = _HEIGHTS[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    page = context.new_page()
    page.goto(address + _PAGES[name])
    ends = page.locator(_BLOCKS).evaluate_all(_ENDS)
    end = max(bottom for bottom in ends if bottom <= height - _BELOW)
    column = page.locator("main").bounding_box()
    assert column is not None, f"{name} must have a main column"
    left = max(0, column["x"] - _MARGIN)
    kept = IMAGES / f"{name}-{width}.png"
    clip = {"x": left, "y": 0, "width": min(width, column["width"] + 2 * _MARGIN), "height": end + _BELOW}
    page.screenshot(path=str(kept), full_page=True, clip=clip)
    context.close()
    return kept


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name in _PAGES:
            for size in _HEIGHTS:
                kept = take(browser, address, name, size)
                taken = kept.stat().st_size
                print(f"{kept.name}: {taken / 1000:.0f} kB")
                if taken > MOST_BYTES:
                    sys.exit(f"a picture must have at most {MOST_BYTES:,} bytes, {kept.name} has {taken:,}")
        browser.close()


if __name__ == "__main__":
    main()
