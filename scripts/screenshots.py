"""Take screenshots of every page with demo data, at two widths in both themes, into screenshots/.

`python scripts/screenshots.py --readme` also updates the images of the README in docs/images.
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
START_TIMEOUT, POLL_INTERVAL = 120, 0.5
ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "screenshots"
IMAGES = ROOT / "docs" / "images"

SIZES = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
AGENT = "/agents/reply-drafter"
USERNAME = "ada"
PAGES = {
    "list": "/",
    "filters": "/?panel=filters&q=support",
    "go-to": "/go-to",
    "usage": "/agents/support-triage/usage",
    "trash": "/deleted-agents",
    "delete": f"{AGENT}/delete",
    "archive": f"{AGENT}/archive",
    "no-match": "/?q=nothing-like-this",
    "new": "/new-agent",
    "editor": AGENT,
    "broken-reference": "/agents/sql-helper",
    "history": f"{AGENT}/versions",
    "live-history": f"{AGENT}/live-history",
    "used-by": f"{AGENT}/used-by",
    "agent-runs": f"{AGENT}/runs",
    "version": f"{AGENT}/versions/3",
    "compare": f"{AGENT}/versions/compare?from=live&to=head",
    "publish": f"{AGENT}/versions/5/activate",
    "restore": f"{AGENT}/versions/2/restore",
    "keys": "/account/keys",
    "password": "/account/password",
    "team": "/team",
    "api": "/api/docs",
    "not-found": "/nothing-here",
    "admin": "/admin/",
    "admin-agents": "/admin/agents_app/agent/",
}
MESSAGE = "the proofreader of a night train"
README_IMAGES = {
    ("try", "wide", "light"),
    ("list", "wide", "light"),
    ("editor", "wide", "dark"),
    ("compare", "wide", "light"),
    ("history", "phone", "light"),
}


@contextmanager
def run_application(data_dir: str) -> Iterator[str]:
    """Run the application with demo data. Yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "agentcms.server.run", "--stop-with-parent"]
    environment = {**os.environ, "PORT": port, "DATA_DIR": data_dir, "DEMO_DATA": "yes"}
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until_healthy(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    """Exit if the application stops or is not healthy after START_TIMEOUT seconds."""
    for _ in range(int(START_TIMEOUT / POLL_INTERVAL)):
        with suppress(URLError), urlopen(f"{url}/healthz"):  # noqa: S310
            return
        if process.poll() is not None:
            break
        time.sleep(POLL_INTERVAL)
    sys.exit("The application did not start.")


def sign_in(page: Page, base_url: str, password: str) -> None:
    page.goto(f"{base_url}/sign-in")
    page.fill("[name=username]", USERNAME)
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in" not in url)


def create_run(browser: Any, base_url: str, password: str) -> dict[str, str]:
    """Run an agent in the playground. Return the paths of the pages that show the run, by name."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, base_url, password)
    page.goto(f"{base_url}/agents/storyteller/try")
    page.get_by_label("Message").fill(MESSAGE)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector("[data-answer]")
    page.wait_for_selector("[aria-busy]", state="detached")
    urls = {"try": page.url, "runs": "/runs", "run": page.get_by_text("Open the run").last.get_attribute("href")}
    context.close()
    return {name: url.removeprefix(base_url) for name, url in urls.items()}


def capture_pages(browser: Any, base_url: str, password: str, size: str, theme: str) -> None:
    context = browser.new_context(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, base_url, password)
    for name, path in PAGES.items():
        page.goto(f"{base_url}{path}")
        page.mouse.move(1, 1)  # the editor of long texts loads when somebody uses the page
        page.wait_for_load_state("networkidle")
        page.screenshot(path=OUT / f"{name}-{size}-{theme}.png")
        if (name, size, theme) in README_IMAGES and "--readme" in sys.argv:
            page.screenshot(path=IMAGES / f"{name}.png")
    context.close()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data_dir, run_application(data_dir) as url, sync_playwright() as playwright:
        password = get_password(USERNAME, Path(data_dir))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        PAGES.update(create_run(browser, url, password))
        for size in SIZES:
            for theme in ("light", "dark"):
                capture_pages(browser, url, password, size, theme)
        browser.close()
    print(f"{len(PAGES) * 4} screenshots in {OUT}")


def get_password(username: str, data_dir: Path) -> str:
    users = json.loads((data_dir / "demo_passwords.json").read_text())["users"]
    return next(str(user["password"]) for user in users if user["username"] == username)


if __name__ == "__main__":
    main()
