"""Take screenshots of every page with demo data, at two widths in both themes, into screenshots/.

Name pages to take only those: `python scripts/screenshots.py editor history`. The whole page is in the picture.
Fails if a page scrolls sideways or writes to the console.

`python scripts/screenshots.py --readme` updates the images of the README in docs/images, from the demo data alone.
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
from typing import Literal
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from screenshot_data import create_outside_tools, write_commands
from screenshot_pages import CONVERSATION_PAGES, CONVERSATIONS, LINKED_PAGES, PAGES, PARTICIPANT, PARTICIPANT_PAGES
from screenshot_steps import PREPARED_PAGES, Step

CHROMIUM = which("chromium") or which("google-chrome")
START_TIMEOUT, POLL_INTERVAL = 120, 0.5
ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "screenshots"
IMAGES = ROOT / "docs" / "images"

SIZES: dict[str, ViewportSize] = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
USERNAME = "ada"
EXPECTED = ("status of 404", "status of 422")  # what some of the pages are about
IS_README = "--readme" in sys.argv
MESSAGE = "the proofreader of a night train"
README_IMAGES = {
    ("try", "wide", "light"),
    ("list", "wide", "light"),
    ("editor", "wide", "dark"),
    ("compare", "wide", "light"),
    ("history", "phone", "light"),
}


@contextmanager
def run_application(data_dir: str, variables: dict[str, str]) -> Iterator[str]:
    """Run the application with demo data. Yield its URL."""
    with socket.socket() as probe:
        # The system chooses a free port: `make run` may use the usual one.
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    # The option lets all processes end with this script, also if it is killed.
    command = [sys.executable, "-m", "agentcms.server.run", "--stop-with-parent"]
    environment = {**os.environ, **variables, "PORT": port, "DATA_DIR": data_dir, "DEMO_DATA": "yes"}
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


def sign_in(page: Page, base_url: str, username: str, password: str) -> None:
    page.goto(f"{base_url}/sign-in")
    page.fill("[name=username]", username)
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in" not in url)


def create_run(page: Page, base_url: str) -> dict[str, str]:
    """Run an agent in the playground. Return the paths of the pages that show the run, by name."""
    page.goto(f"{base_url}/agents/storyteller/try")
    page.get_by_label("Message").fill(MESSAGE)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector("[data-answer]")
    page.wait_for_selector("[aria-busy]", state="detached")
    paths = {"try": page.url, "run": page.get_by_text("Open the run").last.get_attribute("href") or ""}
    return {name: path.removeprefix(base_url) for name, path in paths.items()}


def find_pages(browser: Browser, base_url: str, passwords: dict[str, str]) -> list[tuple[str, str, str]]:
    """Follow the links to the pages without a fixed URL. Return user, name and path of all pages."""
    pages = [(USERNAME, name, path) for name, path in PAGES.items()]
    page = open_signed_in(browser, base_url, USERNAME, passwords)
    paths = create_run(page, base_url)
    for name, (start, selector) in LINKED_PAGES.items():
        paths[name] = follow(page, base_url, paths.get(start, start), selector)
    pages += [(USERNAME, name, path) for name, path in paths.items()]
    page = open_signed_in(browser, base_url, PARTICIPANT, passwords)
    for name, selector in CONVERSATION_PAGES.items():
        pages.append((PARTICIPANT, name, follow(page, base_url, CONVERSATIONS, selector)))
    pages += [(PARTICIPANT, name, path) for name, path in PARTICIPANT_PAGES.items()]
    return pages


def find_readme_pages(browser: Browser, base_url: str, passwords: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return user, name and path of the pages that the README shows."""
    paths = {**PAGES, **create_run(open_signed_in(browser, base_url, USERNAME, passwords), base_url)}
    return [(USERNAME, name, paths[name]) for name in sorted({name for name, _, _ in README_IMAGES})]


def follow(page: Page, base_url: str, start: str, selector: str) -> str:
    """Open a page, press a link or button, and return the path where it leads."""
    page.goto(f"{base_url}{start}")
    link = page.locator(selector).first
    # A link is only read. A button must be pressed, which may create what its page shows.
    if target := link.get_attribute("href"):
        return target
    with page.expect_navigation():
        link.click()
    return page.url.removeprefix(base_url)


def open_signed_in(browser: Browser, base_url: str, username: str, passwords: dict[str, str]) -> Page:
    # Without transitions of the style sheets, during which colours would differ from run to run.
    context = browser.new_context(viewport=SIZES["wide"], reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, base_url, username, passwords[username])
    return page


def capture(page: Page, url: str, name: str, prepare: Step | None = None) -> list[str]:
    """Take the screenshots of a page. Return what is wrong with it."""
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if not any(text in message.text for text in EXPECTED):
            problems.append(f"{name}: {message.text}")

    page.on("console", note)
    page.goto(url)
    if prepare:
        prepare(page)
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        page.mouse.move(1, 1)  # the editor of long texts loads when somebody uses the page
        page.wait_for_load_state("networkidle")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            problems.append(f"{name}: scrolls sideways at {viewport['width']} px")
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=OUT / f"{name}-{size}-{theme}.png", full_page=True, animations="disabled")
            if (name, size, theme) in README_IMAGES and IS_README:
                page.screenshot(path=IMAGES / f"{name}.png")
    return problems


def main() -> None:
    OUT.mkdir(exist_ok=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    names = {argument for argument in sys.argv[1:] if not argument.startswith("--")}
    with tempfile.TemporaryDirectory() as data_dir, sync_playwright() as playwright:
        environment = write_commands(Path(data_dir))
        with run_application(data_dir, environment) as url:
            if not IS_README:
                create_outside_tools(url, {**os.environ, **environment, "DATA_DIR": data_dir}, USERNAME)
            # The sandbox of Chromium does not start as root, as in a container. The pages are our own.
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            problems = capture_pages(browser, url, read_passwords(Path(data_dir)), names)
            browser.close()
    sys.exit("\n".join(problems) or None)


def capture_pages(browser: Browser, base_url: str, passwords: dict[str, str], names: set[str]) -> list[str]:
    """Take the screenshots of the named pages, or of all. Return what is wrong with them."""
    visitors = {name: open_signed_in(browser, base_url, name, passwords) for name in (USERNAME, PARTICIPANT)}
    find = find_readme_pages if IS_README else find_pages
    pages = [page for page in find(browser, base_url, passwords) if not names or page[1] in names]
    steps = {} if IS_README else PREPARED_PAGES
    pages += [(USERNAME, name, path) for name, (path, _) in steps.items() if not names or name in names]
    problems = []
    for username, name, path in pages:
        # A page of its own for each, so that the messages of the console belong to one page.
        page = visitors[username].context.new_page()
        try:
            problems += capture(page, f"{base_url}{path}", name, steps[name][1] if name in steps else None)
        except (PlaywrightError, AssertionError) as error:  # the other pages are taken nevertheless
            problems.append(f"{name}: {error}")
        page.close()
    print(f"{len(pages) * len(SIZES) * len(THEMES)} screenshots in {OUT}")
    return problems


def read_passwords(data_dir: Path) -> dict[str, str]:
    users = json.loads((data_dir / "demo_passwords.json").read_text())["users"]
    return {user["username"]: user["password"] for user in users}


if __name__ == "__main__":
    main()
