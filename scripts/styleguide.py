"""Render templates/styleguide.html and the sample pages with sample data, without a database.

`python scripts/styleguide.py` writes the pages to the folder `styleguide` in the data folder. With `--shots` it also
takes screenshots at two widths in both themes, with the Content-Security-Policy of the application. It then fails if
a page writes to the console or is wider than the window.
"""

from __future__ import annotations

import functools
import http.server
import itertools
import os
import sys
import threading
from pathlib import Path
from shutil import which
from typing import Any

CHROMIUM = which("chromium") or which("google-chrome")
ROOT = Path(__file__).resolve().parent.parent
# The script is started by its path, so only its own folder is in the search path of modules.
sys.path.append(str(ROOT))
# The URLs and the policy of the application. With DEBUG, names of static files have no hash.
os.environ |= {"DJANGO_SETTINGS_MODULE": "agentcms.settings", "DEBUG": "yes"}

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.template.loader import render_to_string  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from samples import SampleUser, build_context, build_sign_in_form  # noqa: E402

from agentcms.middleware.csp import format_policy, policy_for  # noqa: E402

OUT = settings.DATA_DIR / "styleguide"
PAGES = {"index": "styleguide.html", "login": "registration/login.html", "404": "404.html", "500": "500.html"}
PAGES |= {name: f"styleguide/{name}.html" for name in ("editor", "list", "history", "compare")}
THEMES, WIDTHS = ("light", "dark"), (1440, 390)
SETTLE_MILLISECONDS = 450  # skeletons appear after 300


def build_request() -> Any:
    """Return a request of a user who is signed in."""
    request: Any = RequestFactory().get("/")
    request.user, request.csp_nonce = SampleUser(), "styleguide"
    return request


def render_pages() -> None:
    """Write all pages, and link the static files next to them."""
    OUT.mkdir(parents=True, exist_ok=True)
    if not (OUT / "static").exists():
        # A link, so that a changed style sheet shows after a reload.
        (OUT / "static").symlink_to(ROOT / "static")
    for name, template in PAGES.items():
        request, context = build_request(), {**build_context(), "nav": "agents", "approval_count": 2}
        if name == "login":
            request.user, context = None, {"form": build_sign_in_form(), "next": "/agents/"}
        (OUT / f"{name}.html").write_text(render_to_string(template, context, request))


class PageHandler(http.server.SimpleHTTPRequestHandler):
    """A file server that sends the policy of the application and logs nothing."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", format_policy(policy_for("/"), build_request()))
        super().end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


def start_server() -> tuple[http.server.ThreadingHTTPServer, str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(PageHandler, directory=str(OUT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def take_screenshots() -> list[str]:
    """Take the screenshots of all pages. Return the problems: console messages, and pages that are too wide."""
    from playwright.sync_api import sync_playwright

    problems: list[str] = []
    server, url = start_server()
    with sync_playwright() as playwright:
        # The sandbox of Chromium does not start as root, as in a container. The pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for theme, width in itertools.product(THEMES, WIDTHS):
            problems += capture_pages(browser, url, theme, width)
        browser.close()
    server.shutdown()
    return problems


def capture_pages(browser: Any, url: str, theme: str, width: int) -> list[str]:
    """Take a screenshot of each page. Return the problems."""
    problems: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(str(error)))
    for name in PAGES:
        page.goto(f"{url}/{name}.html")
        page.mouse.move(1, 1)  # the editor of long texts loads when somebody uses the page
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            problems.append(f"{name} is wider than the window at {width} pixels")
        page.screenshot(path=OUT / f"{name}-{width}-{theme}.png", full_page=True)
    page.close()
    return problems


if __name__ == "__main__":
    render_pages()
    print(f"Wrote {OUT}")
    if "--shots" in sys.argv:
        problems = take_screenshots()
        print("\n".join(problems) or "No problems.")
        sys.exit(bool(problems))
