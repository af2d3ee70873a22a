"""Render templates/styleguide.html and the sample pages with made-up data, without a database.

`python scripts/styleguide.py` writes the pages into `styleguide` of the data folder; with `--shots` it also takes
screenshots of them at two widths in both themes, under the strict policy that the application sends, and fails on
anything the console says.
"""

from __future__ import annotations

import functools
import http.server
import os
import sys
import threading
from pathlib import Path
from shutil import which
from typing import Any

CHROMIUM = which("chromium") or which("google-chrome")
ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
# The application's own addresses and policy; with DEBUG static files have their own names.
os.environ |= {"DJANGO_SETTINGS_MODULE": "agentcms.settings", "DEBUG": "yes"}

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.template.loader import render_to_string  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from samples import Reader, data, sign_in_form  # noqa: E402

from agentcms.middleware.csp import policy_for, written  # noqa: E402

OUT = settings.DATA_DIR / "styleguide"
PAGES = {"index": "styleguide.html", "login": "registration/login.html", "404": "404.html", "500": "500.html"}
PAGES |= {name: f"styleguide/{name}.html" for name in ("editor", "list", "history", "compare")}


def request() -> Any:
    """A request for a page by somebody who is signed in."""
    asked: Any = RequestFactory().get("/")
    asked.user, asked.csp_nonce = Reader(), "styleguide"
    return asked


def render() -> None:
    """Write every page, and put the static files beside them."""
    OUT.mkdir(parents=True, exist_ok=True)
    if not (OUT / "static").exists():
        (OUT / "static").symlink_to(ROOT / "static")
    for name, template in PAGES.items():
        asked, context = request(), {**data(), "nav": "agents"}
        if name == "login":
            asked.user, context = None, {"form": sign_in_form(), "next": "/agents/"}
        (OUT / f"{name}.html").write_text(render_to_string(template, context, asked))


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", written(policy_for("/"), request()))
        super().end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


def serve() -> tuple[http.server.ThreadingHTTPServer, str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(OUT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def shoot() -> list[str]:
    """Take the screenshots; answer what the console and the layout complained about."""
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    server, address = serve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for width in (1440, 390):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
                page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
                page.on("pageerror", lambda error: faults.append(str(error)))
                for name in PAGES:
                    page.goto(f"{address}/{name}.html")
                    page.wait_for_timeout(450)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        faults.append(f"{name} scrolls sideways at {width}")
                    page.screenshot(path=OUT / f"{name}-{width}-{theme}.png", full_page=True)
                page.close()
        browser.close()
    server.shutdown()
    return faults


if __name__ == "__main__":
    render()
    print(f"Wrote {OUT}")
    if "--shots" in sys.argv:
        complaints = shoot()
        print("\n".join(complaints) or "The console stayed empty.")
        sys.exit(bool(complaints))
