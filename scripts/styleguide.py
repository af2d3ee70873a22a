"""Render templates/styleguide.html and the sample pages with made-up data into var/styleguide, without a database.

`python scripts/styleguide.py` writes the pages; with `--shots` it also takes screenshots of them at two widths in both
themes, under the strict policy that the application sends, and fails on anything the console says.
"""

import functools
import http.server
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
from django import forms
from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.urls import include, path
from django.utils import timezone

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "var" / "styleguide"
NONCE = "styleguide"
POLICY = (
    f"default-src 'none'; script-src 'nonce-{NONCE}'; style-src 'self' 'nonce-{NONCE}'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STATES = ("live", "draft", "broken")
PAGES = ("editor", "list", "history", "compare")


def nothing(request: object) -> HttpResponse:
    return HttpResponse()


def names(*found: str) -> list[Any]:
    return [path(f"{name}/", nothing, name=name) for name in found]


def of_a_version() -> list[Any]:
    acts = ("view", "restore", "activate", "describe", "duplicate", "download", "delete")
    return [*names("compare"), *(path(f"<int:number>/{name}/", nothing, name=name) for name in acts)]


urlpatterns = [
    *names("login", "logout"),
    path("agents/", include((names("list", "create"), "agents"))),
    path("agents/<str:agent_id>/versions/", include((of_a_version(), "versions"))),
    path("account/", include((names("keys", "team", "password"), "account"))),
    path("admin/", include((names("index"), "admin"))),
]

INSTRUCTIONS = """# Role
You are the first reader of every message sent to {{company}}. Decide what it is about, how urgent it is, and who should answer it.

# Rules
1. Answer only from the handbook. When the handbook is silent, say so and hand over to {{on_call}}.
2. Never promise a refund over 200 €. Write **"I have passed this on"** instead.
3. Keep the customer's own words when you quote a problem; do not translate them.

# Tone
- Plain, short, warm. No exclamation marks.
- If somebody is upset, name what went wrong before anything else.

# Hand-over
Use `create_ticket` with the fields below, then tell the customer what happens next and when:
- queue: one of billing, delivery, technical
- urgency: 1 to 3, where 3 means that somebody cannot work
- summary: one sentence, at most 160 characters
"""  # noqa: E501


class SampleForm(forms.Form):
    name = forms.CharField(initial="Support triage", help_text="What people read in lists.")
    description = forms.CharField(initial="", widget=forms.Textarea(attrs={"rows": 2}), required=False)
    provider = forms.ChoiceField(choices=[("anthropic", "Anthropic"), ("openai", "OpenAI"), ("demo", "Demo")])
    model_name = forms.CharField(label="Model", initial="claude-sonnet-5", help_text="Any name the provider knows.")
    temperature = forms.DecimalField(required=False)
    locked = forms.CharField(label="Identifier", initial="support-triage", disabled=True)
    version_name = forms.CharField(label="Name", required=False, widget=forms.TextInput(attrs={"data-of-save": True}))
    message = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2, "data-of-save": True}))
    options = forms.CharField(
        label="Default options",
        widget=forms.Textarea(attrs={"data-editor": "json", "rows": 8}),
        help_text="Passed to the model with each run.",
        required=False,
    )
    instructions = forms.CharField(widget=forms.Textarea(attrs={"data-editor": "text", "rows": 20}), required=False)


class Reader:
    """A signed-in person, without a database."""

    pk = 1
    is_authenticated = is_staff = True
    username = "maren"

    def get_full_name(self) -> str:
        return "Maren Holt"


def option(key: str, title: str, description: str, checked: bool = False) -> dict[str, Any]:
    return {"key": key, "title": title, "description": description, "checked": checked}


def line(kind: str, old: int | None, new: int | None, *parts: tuple[str, str], change: int = 0) -> dict[str, Any]:
    return {
        "kind": kind,
        "old": old and {"number": old},
        "new": new and {"number": new},
        "parts": [{"kind": k, "text": t} for k, t in parts],
        "change": change,
    }


def side(number: int, *parts: tuple[str, str]) -> dict[str, Any]:
    return {"number": number, "parts": [{"kind": k, "text": t} for k, t in parts]}


def text(label: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A text comparison, each row a block of its own."""
    blocks = [{"rows": [row], "folded": row["kind"] == "folded", "key": str(at)} for at, row in enumerate(rows)]
    return {"label": label, "blocks": blocks}


def version(number: int, minutes: int, author: str, source: str, summary: str, **more: Any) -> dict[str, Any]:
    """An entry of a timeline."""
    made = timezone.now() - timedelta(minutes=minutes)
    row = {"author_name": author, "get_source_display": source, "created_at": made, "based_on": number - 1, **more}
    return {"number": number, "note": summary, "version": row, **{f"is_{name}": more.get(name) for name in STATES}}


def agent(name: str, description: str, model: str, live: int, **more: Any) -> dict[str, Any]:
    defaults = {"id": name, "tools": 3, "owner": "newsroom", "author": "Maren Holt"}
    return {**defaults, "name": name, "description": description, "model": model, "live": live, **more}


def data() -> dict[str, Any]:
    same, gone, new = "equal", "removed", "added"
    rule = "2. Never promise a refund "
    return {
        "now": timezone.now(),
        "earlier": timezone.now() - timedelta(hours=3, minutes=12),
        "form": SampleForm(
            {
                "name": "",
                "provider": "anthropic",
                "model_name": "claude-sonnet-5",
                "instructions": INSTRUCTIONS,
                "options": '{\n  "temperature": 0.2,\n  "maxSteps": 8,\n  "topP": 0.95,,\n  "stop": ["\\n\\n"]\n}',
            }
        ),
        "tools": [
            option("search_handbook", "Search the handbook", "Finds passages by meaning, newest edition first.", True),
            option("create_ticket", "Create a ticket", "Opens a ticket in the queue named.", True),
            option("find_order", "Find an order", "By number, e-mail address or name."),
            option("send_mail", "Send a mail", "From the shared address of the team. Asks before it sends."),
            option("now", "The time", "In the time zone of the team."),
        ],
        "missing": ["lookup_crm"],
        "page": Paginator(range(312), 50).page(2),
        "agents": [
            agent(
                "Support triage", "Reads every message first.", "claude-sonnet-5", 7, ahead=2, broken=True, snippet=1
            ),
            agent("Headline desk", "Proposes three headlines under 60 characters.", "gpt-5-mini", 12, tools=0),
            agent(
                "Night shift", "Answers while everybody sleeps.", "claude-haiku-5", 3, ahead=1, author="Idris Okafor"
            ),
            agent("Price watch", "Compares our price list with last week's.", "demo", 1, tools=11, owner="sales"),
        ],
        "sample": {"pk": "support-triage"},
        "versions": [
            version(9, 4, "Maren Holt", "page", "Instructions +12 −3 · Tools +search · Model a, now b", draft=True),
            version(8, 192, "release-bot", "API", "Default options temperature 0.4, now 0.2"),
            version(
                7,
                2900,
                "Idris Okafor",
                "page",
                "Instructions +4 −4",
                live=True,
                pinned=True,
                name="Before the price change",
                own_message="Legal asked for the 200 € limit to be said plainly.",
            ),
            version(6, 5100, "Maren Holt", "restore", "Restored from v3", broken=True),
            version(5, 9100, "import", "import", "Tools +find_order, send_mail · Metadata 2 paths"),
        ],
        "unified": [
            {"kind": "folded", "count": 4},
            line(same, 5, 5, (same, "# Rules")),
            line(gone, 6, None, (same, rule), (gone, "of"), (same, " over "), (gone, "500"), (same, " €."), change=1),
            line(
                new,
                None,
                6,
                (same, rule),
                (same, "over "),
                (new, "200"),
                (same, " €. "),
                (new, 'Write **"I have passed this on"** instead.'),
            ),
            line(same, 7, 7, (same, "3. Keep the customer's own words when you quote a problem.")),
            line(new, None, 8, (same, "4. Do not translate them."), change=2),
            line(same, 8, 9, (same, "")),
            {"kind": "folded", "count": 31},
        ],
        "sides": [
            {"kind": "folded", "count": 4},
            {"kind": "equal", "old": side(5, (same, "# Rules")), "new": side(5, (same, "# Rules"))},
            {
                "kind": "changed",
                "change": 1,
                "old": side(6, (same, rule), (same, "over "), (gone, "500"), (same, " €.")),
                "new": side(
                    6,
                    (same, rule),
                    (same, "over "),
                    (new, "200"),
                    (same, " €. "),
                    (new, 'Write **"I have passed this on"** instead.'),
                ),
            },
            {
                "kind": "equal",
                "old": side(7, (same, "3. Keep the customer's own words when you quote a problem.")),
                "new": side(7, (same, "3. Keep the customer's own words when you quote a problem.")),
            },
            {"kind": "changed", "change": 2, "old": None, "new": side(8, (same, "4. Do not translate them."))},
            {"kind": "changed", "change": 3, "old": side(8, (same, "Be brief.")), "new": None},
            {"kind": "folded", "count": 31},
        ],
        "items": [
            {"kind": "added", "title": "Search the handbook", "key": "search_handbook", "change": 4},
            {"kind": "removed", "title": "", "key": "lookup_crm", "change": 5},
            {"kind": "moved", "title": "The time", "key": "now", "was": 4, "now": 1, "change": 6},
            {"kind": "equal", "title": "Create a ticket", "key": "create_ticket"},
        ],
        "paths": [
            {"path": "temperature", "old": "0.4", "new": "0.2", "change": 7},
            {"path": "stop[0]", "old": None, "new": '"\\n\\n"', "change": 8},
            {"path": "headers.X-Team", "old": '"news"', "new": None, "change": 9},
        ],
    }


def set_up() -> None:
    settings.configure(
        DEBUG=True,
        USE_TZ=True,
        STATIC_URL="static/",
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=["django.contrib.staticfiles"],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [ROOT / "templates"],
                "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
            }
        ],
    )
    django.setup()


def render() -> None:
    """Write every page, and put the static files beside them."""
    OUT.mkdir(parents=True, exist_ok=True)
    if not (OUT / "static").exists():
        (OUT / "static").symlink_to(ROOT / "static")
    templates = {"index": "styleguide.html", "login": "registration/login.html", "404": "404.html", "500": "500.html"}
    templates |= {name: f"styleguide/{name}.html" for name in PAGES}
    for name, template in templates.items():
        made = data()
        made |= {name: text("Instructions", made[name]) for name in ("unified", "sides")}
        context = {**made, "csp_nonce": NONCE, "user": Reader(), "nav": "agents"}
        if name == "login":
            context = {"csp_nonce": NONCE, "form": sign_in_form(), "next": "/agents/"}
        (OUT / f"{name}.html").write_text(render_to_string(template, context, RequestFactory().get("/")))


def sign_in_form() -> forms.Form:
    class SignInForm(forms.Form):
        username = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "username"}))
        password = forms.CharField(widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))

    form = SignInForm({"username": "maren", "password": "x"})
    form.add_error(None, "That name and password do not belong together. Both mind capitals.")
    return form


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
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
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for width in (1440, 390):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
                page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
                page.on("pageerror", lambda error: faults.append(str(error)))
                for name in ("index", "login", "404", "500", *PAGES):
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
    set_up()
    render()
    print(f"Wrote {OUT}")
    if "--shots" in sys.argv:
        complaints = shoot()
        print("\n".join(complaints) or "The console stayed empty.")
        sys.exit(bool(complaints))
