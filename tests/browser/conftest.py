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
        page = self.new_page()
        page.on(
            "console", lambda message: message.text.startswith(AUTOFOCUS_MESSAGE) or self.console.append(message.text)
        )
        page.on("pageerror", lambda error: (self.console.append(str(error)), self.errors.append(str(error))))
        page.on("dialog", lambda dialog: (self.console.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def new_page(self) -> Page:
        return self.context.new_page()

    def leave(self) -> None:
        """Close the pages."""
        self.context.close()

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


class Desk:
    """The browser context of a signed-in user, for one test after the other.

    An empty page stays open. Pages that it opens share its process and its cache, which saves half the CPU of a first
    page in a new context.
    """

    def __init__(self, context: BrowserContext, base_url: str) -> None:
        self.context = context
        self.cookies = context.cookies()
        self.is_free = True
        self.first = context.new_page()
        self.first.route(EMPTY_PAGE, lambda route: route.fulfill(content_type="text/html", headers=SAME_GROUP))
        self.first.goto(f"{base_url}/empty-page")
        self.first.unroute_all()

    def open(self) -> Page:
        with self.context.expect_page() as opened:
            self.first.evaluate("() => { open('about:blank') }")
        return opened.value

    def clear(self) -> None:
        """Close all pages but the first one, and restore the cookies."""
        for page in self.context.pages:
            if page != self.first:
                page.close()
        self.context.set_offline(False)
        self.first.evaluate("() => { localStorage.clear(); sessionStorage.clear() }")
        self.context.clear_cookies()
        self.context.add_cookies(self.cookies)
        self.is_free = True


EMPTY_PAGE = "**/empty-page"
# The header of all pages of the application. Otherwise those that the empty page opens would have another process.
SAME_GROUP = {"Cross-Origin-Opener-Policy": "same-origin"}


class DeskVisitor(Visitor):
    """A visitor at a desk that later visitors use too."""

    def __init__(self, desk: Desk, base_url: str) -> None:
        self.desk = desk
        desk.is_free = False
        super().__init__(desk.context, base_url)

    def new_page(self) -> Page:
        return self.desk.open()

    def leave(self) -> None:
        self.desk.clear()


class Desks:
    """The desks of all users who have visited the copy."""

    def __init__(self, browser: Browser, base_url: str) -> None:
        self.browser, self.base_url = browser, base_url
        self.by_name: dict[str, Desk] = {}

    def of(self, name: str) -> Desk:
        if name not in self.by_name:
            context = self.browser.new_context(viewport=VIEWPORT)
            visitor = Visitor(context, self.base_url).sign_in(name)
            visitor.page.close()
            self.by_name[name] = Desk(context, self.base_url)
        return self.by_name[name]


VIEWPORT = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def desks(browser: Browser, served: Served) -> Desks:
    return Desks(browser, served.base_url)


@pytest.fixture
def visit(browser: Browser, served: Served, desks: Desks) -> Iterator[Any]:
    """Return a function that signs a user in: `visit()`, `visit("editor")`, `visit(java_script_enabled=False)`.

    Use `visit(own_session=True)` in tests that sign out, and `visit(own_context=True)` in those of a first visit.
    """
    visitors: list[Visitor] = []

    def begin(
        name: str = "publisher", own_session: bool = False, own_context: bool = False, **options: Any
    ) -> Visitor:
        desk = None if own_session else desks.of(name)
        if desk and desk.is_free and not own_context and not options:
            visitors.append(DeskVisitor(desk, served.base_url))
            return visitors[-1]
        state = {"cookies": desk.cookies, "origins": []} if desk else None
        context = browser.new_context(viewport=VIEWPORT, storage_state=state, **options)
        visitors.append(Visitor(context, served.base_url, options.get("java_script_enabled", True)))
        return visitors[-1] if desk else visitors[-1].sign_in(name)

    yield begin
    for visitor in visitors:
        visitor.leave()
    assert [error for visitor in visitors for error in visitor.errors] == []
