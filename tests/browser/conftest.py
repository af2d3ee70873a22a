"""A browser that uses a running copy, and agents with a history."""

import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.served import PASSWORD, Served

# The first run in a process imports the model libraries, which takes seconds on a busy machine.
expect.set_options(timeout=30_000)


# Chromium would start a process for the popup of the address bar with every context, which takes as long as a page.
# The second value of the option replaces that of Playwright, so it names the features that Playwright disables.
DISABLED_FEATURES = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "OptimizationHints",
)
# Debian's package of Chromium without windows needs a third less CPU for a page.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
CHROMIUM_OPTIONS = ["--no-sandbox", f"--disable-features={','.join(DISABLED_FEATURES)}"]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start one browser for the tests in this folder.

    It stops before other tests begin: Playwright keeps an event loop running, in which Django refuses queries.
    """
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


# A message of Chromium after typing before it has set the focus.
AUTOFOCUS_MESSAGE = "Autofocus processing was blocked"


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    """Return an API client of the publisher."""
    with served.client(served.keys["publisher"]) as client:
        yield client


@pytest.fixture
def agent(api: httpx.Client) -> str:
    """Return the id of an agent with three versions, the third of them live."""
    agent_id = f"agent-{uuid.uuid4().hex[:8]}"
    create_agent(api, agent_id)
    patch_agent(api, agent_id, instructions="Greet guests warmly.\nAnswer briefly.")
    patch_agent(api, agent_id, tools=["text-search"], name="Night porter")
    return agent_id


def create_agent(api: httpx.Client, agent_id: str, **fields: Any) -> None:
    body = {
        "id": agent_id,
        "name": "Concierge",
        "instructions": "Greet guests.\nAnswer briefly.",
        "model": {"provider": "demo", "name": "echo"},
        **fields,
    }
    assert api.post("/api/stored/agents", json=body).status_code == 201


def patch_agent(api: httpx.Client, agent_id: str, **fields: Any) -> None:
    """Change an agent, with a message: a version without one would be folded into the next one of the history."""
    body = {"changeMessage": "Changed for a test", **fields}
    assert api.patch(f"/api/stored/agents/{agent_id}", json=body).status_code == 200


def activate(api: httpx.Client, agent_id: str, number: int) -> None:
    versions = api.get(f"/api/stored/agents/{agent_id}/versions", params={"perPage": 100}).json()["versions"]
    (version,) = (version for version in versions if version["versionNumber"] == number)
    assert api.post(f"/api/stored/agents/{agent_id}/versions/{version['id']}/activate", json={}).status_code == 200


def live_number(api: httpx.Client, agent_id: str) -> int:
    return int(api.get(f"/api/stored/agents/{agent_id}").json()["activeVersionNumber"])


class Visitor:
    """A signed-in user with a browser context and its console messages."""

    def __init__(self, context: BrowserContext, base_url: str, runs_scripts: bool = True) -> None:
        self.context = context
        self.base_url = base_url
        self.runs_scripts = runs_scripts
        self.console: list[str] = []
        self.errors: list[str] = []  # of scripts, which no page may have
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.on(
            "console", lambda message: message.text.startswith(AUTOFOCUS_MESSAGE) or self.console.append(message.text)
        )
        page.on("pageerror", lambda error: (self.console.append(str(error)), self.errors.append(str(error))))
        page.on("dialog", lambda dialog: (self.console.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def sign_in(self, name: str) -> "Visitor":
        self.page.goto(f"{self.base_url}/sign-in")
        self.page.fill("[name=username]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.press("[name=password]", "Enter")
        self.page.wait_for_url(lambda url: "/sign-in" not in url)
        return self

    def goto(self, path: str) -> Page:
        self.page.goto(f"{self.base_url}{path}")
        if self.runs_scripts:
            # htmx starts with a timer of 0 ms, which can be after the load event. This timer comes later.
            self.page.evaluate("new Promise((resolve) => setTimeout(resolve))")
        return self.page


# Cookies of signed-in users by name, so that not every test signs in.
SIGNED_IN: dict[str, Any] = {}


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Any]:
    """Return a function that signs a user in: `visit()`, `visit("editor")`, `visit(java_script_enabled=False)`.

    Use `visit(own_session=True)` in tests that sign out.
    """
    visitors: list[Visitor] = []

    def begin(name: str = "publisher", own_session: bool = False, **options: Any) -> Visitor:
        state = None if own_session else SIGNED_IN.get(name)
        context = browser.new_context(viewport={"width": 1280, "height": 900}, storage_state=state, **options)
        visitor = Visitor(context, served.base_url, options.get("java_script_enabled", True))
        visitors.append(visitor)
        if state is None:
            visitor.sign_in(name)
            if not own_session:
                SIGNED_IN[name] = {"cookies": context.cookies(), "origins": []}
        return visitor

    yield begin
    for visitor in visitors:
        visitor.context.close()
    assert [error for visitor in visitors for error in visitor.errors] == []
