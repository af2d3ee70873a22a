"""Photograph every page of the application, on demo data of its own, into screenshots/: two widths, both themes.

`python scripts/screenshots.py --readme` keeps those that the README shows, in docs/images.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Page, sync_playwright

CHROMIUM = which("chromium") or which("google-chrome")
ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "screenshots"
IMAGES = ROOT / "docs" / "images"

SIZES = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
AGENT = "/agents/reply-drafter"
PAGES = {
    "list": "/",
    "no-match": "/?q=nothing-like-this",
    "new": "/new-agent",
    "editor": AGENT,
    "broken-reference": "/agents/sql-helper",
    "history": f"{AGENT}/versions",
    "moves": f"{AGENT}/activations",
    "version": f"{AGENT}/versions/3",
    "compare": f"{AGENT}/versions/compare?from=live&to=head",
    "make-live": f"{AGENT}/versions/5/activate",
    "restore": f"{AGENT}/versions/2/restore",
    "keys": "/account/keys",
    "password": "/account/password",
    "team": "/team",
    "api": "/api/docs",
    "not-found": "/nothing-here",
    "admin": "/admin/",
    "admin-agents": "/admin/agents_app/agent/",
}
QUESTION = "the proofreader of a night train"
README = {
    ("try", "wide", "light"),
    ("list", "wide", "light"),
    ("editor", "wide", "dark"),
    ("compare", "wide", "light"),
    ("history", "phone", "light"),
}


@contextmanager
def served(data: str) -> Iterator[str]:
    """The address of a copy of the application with demo data."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "agentcms.server.run", "--stop-with-parent"]
    environment = {**os.environ, "PORT": port, "DATA_DIR": data, "DEMO_DATA": "yes"}
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for(address, process)
        yield address
    finally:
        process.terminate()
        process.wait()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        with suppress(URLError), urlopen(f"{address}/healthz"):  # noqa: S310
            return
        if process.poll() is not None:
            break
        time.sleep(0.5)
    sys.exit("The application did not start.")


def sign_in(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}/sign-in")
    page.fill("[name=username]", "ada")
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in" not in url)


def ask(browser: Any, address: str, password: str) -> dict[str, str]:
    """The pages of runs: a question to what is live and to the draft, and what the demo asked."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, address, password)
    page.goto(f"{address}/agents/storyteller/try")
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector("[data-answer]")
    page.wait_for_selector("[aria-busy]", state="detached")
    found = {"try": page.url, "runs": "/runs", "run": page.get_by_text("Open the run").last.get_attribute("href")}
    context.close()
    return {name: path.removeprefix(address) for name, path in found.items()}


def photograph(browser: Any, address: str, password: str, size: str, theme: str) -> None:
    context = browser.new_context(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, address, password)
    for name, path in PAGES.items():
        page.goto(f"{address}{path}")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=OUT / f"{name}-{size}-{theme}.png")
        if (name, size, theme) in README and "--readme" in sys.argv:
            page.screenshot(path=IMAGES / f"{name}.png")
    context.close()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, served(data) as address, sync_playwright() as playwright:
        password = password_of("ada", Path(data))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        PAGES.update(ask(browser, address, password))
        for size in SIZES:
            for theme in ("light", "dark"):
                photograph(browser, address, password, size, theme)
        browser.close()
    print(f"{len(PAGES) * 4} pictures in {OUT}")


def password_of(user: str, data: Path) -> str:
    users = json.loads((data / "demo_passwords.json").read_text())["users"]
    return next(str(each["password"]) for each in users if each["username"] == user)


if __name__ == "__main__":
    main()
