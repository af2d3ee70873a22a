"""Made-up data for the pages of the style guide, without a database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.utils import timezone

STATES = ("live", "draft", "broken")
SAME, GONE, NEW = "equal", "removed", "added"
RULE = "2. Never promise a refund "
WRITE_INSTEAD = 'Write **"I have passed this on"** instead.'
QUOTE = "3. Keep the customer's own words when you quote a problem."

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


def sign_in_form() -> forms.Form:
    class SignInForm(forms.Form):
        username = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "username"}))
        password = forms.CharField(widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))

    form = SignInForm({"username": "maren", "password": "x"})
    form.add_error(None, "That name and password do not belong together. Both mind capitals.")
    return form


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
    """What every page of the guide is given."""
    return {
        "now": timezone.now(),
        "earlier": timezone.now() - timedelta(hours=3, minutes=12),
        "form": filled_form(),
        "tools": tools(),
        "missing": ["lookup_crm"],
        "page": Paginator(range(312), 50).page(2),
        "agents": agents(),
        "sample": {"pk": "support-triage"},
        "versions": versions(),
        "unified": text("Instructions", unified()),
        "sides": text("Instructions", sides()),
        "items": items(),
        "paths": paths(),
    }


def filled_form() -> forms.Form:
    """One with two faults: a name that is missing, and options that are no JSON."""
    return SampleForm(
        {
            "name": "",
            "provider": "anthropic",
            "model_name": "claude-sonnet-5",
            "instructions": INSTRUCTIONS,
            "options": '{\n  "temperature": 0.2,\n  "maxSteps": 8,\n  "topP": 0.95,,\n  "stop": ["\\n\\n"]\n}',
        }
    )


def tools() -> list[dict[str, Any]]:
    return [
        option("search_handbook", "Search the handbook", "Finds passages by meaning, newest edition first.", True),
        option("create_ticket", "Create a ticket", "Opens a ticket in the queue named.", True),
        option("find_order", "Find an order", "By number, e-mail address or name."),
        option("send_mail", "Send a mail", "From the shared address of the team. Asks before it sends."),
        option("now", "The time", "In the time zone of the team."),
    ]


def agents() -> list[dict[str, Any]]:
    night = "Answers while everybody sleeps."
    return [
        agent("Support triage", "Reads every message first.", "claude-sonnet-5", 7, ahead=2, broken=True, snippet=1),
        agent("Headline desk", "Proposes three headlines under 60 characters.", "gpt-5-mini", 12, tools=0),
        agent("Night shift", night, "claude-haiku-5", 3, ahead=1, author="Idris Okafor"),
        agent("Price watch", "Compares our price list with last week's.", "demo", 1, tools=11, owner="sales"),
    ]


def versions() -> list[dict[str, Any]]:
    named = {
        "pinned": True,
        "name": "Before the price change",
        "custom_message": "Legal asked for the 200 € limit to be said plainly.",
    }
    return [
        version(9, 4, "Maren Holt", "page", "Instructions +12 −3 · Tools +search · Model a, now b", draft=True),
        version(8, 192, "release-bot", "API", "Default options temperature 0.4, now 0.2"),
        version(7, 2900, "Idris Okafor", "page", "Instructions +4 −4", live=True, **named),
        version(6, 5100, "Maren Holt", "restore", "Restored from v3", broken=True),
        version(5, 9100, "import", "import", "Tools +find_order, send_mail · Metadata 2 paths"),
    ]


def unified() -> list[dict[str, Any]]:
    """A text comparison, one line below the other."""
    before = ((SAME, RULE), (GONE, "of"), (SAME, " over "), (GONE, "500"), (SAME, " €."))
    after = ((SAME, RULE), (SAME, "over "), (NEW, "200"), (SAME, " €. "), (NEW, WRITE_INSTEAD))
    return [
        {"kind": "folded", "count": 4},
        line(SAME, 5, 5, (SAME, "# Rules")),
        line(GONE, 6, None, *before, change=1),
        line(NEW, None, 6, *after),
        line(SAME, 7, 7, (SAME, QUOTE)),
        line(NEW, None, 8, (SAME, "4. Do not translate them."), change=2),
        line(SAME, 8, 9, (SAME, "")),
        {"kind": "folded", "count": 31},
    ]


def sides() -> list[dict[str, Any]]:
    """The same, side by side."""
    before = side(6, (SAME, RULE), (SAME, "over "), (GONE, "500"), (SAME, " €."))
    after = side(6, (SAME, RULE), (SAME, "over "), (NEW, "200"), (SAME, " €. "), (NEW, WRITE_INSTEAD))
    return [
        {"kind": "folded", "count": 4},
        {"kind": "equal", "old": side(5, (SAME, "# Rules")), "new": side(5, (SAME, "# Rules"))},
        {"kind": "changed", "change": 1, "old": before, "new": after},
        {"kind": "equal", "old": side(7, (SAME, QUOTE)), "new": side(7, (SAME, QUOTE))},
        {"kind": "changed", "change": 2, "old": None, "new": side(8, (SAME, "4. Do not translate them."))},
        {"kind": "changed", "change": 3, "old": side(8, (SAME, "Be brief.")), "new": None},
        {"kind": "folded", "count": 31},
    ]


def items() -> list[dict[str, Any]]:
    """What was added to, removed from and moved inside a list."""
    return [
        {"kind": "added", "title": "Search the handbook", "key": "search_handbook", "change": 4},
        {"kind": "removed", "title": "", "key": "lookup_crm", "change": 5},
        {"kind": "moved", "title": "The time", "key": "now", "was": 4, "now": 1, "change": 6},
        {"kind": "equal", "title": "Create a ticket", "key": "create_ticket"},
    ]


def paths() -> list[dict[str, Any]]:
    """What changed inside a JSON field."""
    return [
        {"path": "temperature", "old": "0.4", "new": "0.2", "change": 7},
        {"path": "stop[0]", "old": None, "new": '"\\n\\n"', "change": 8},
        {"path": "headers.X-Team", "old": '"news"', "new": None, "change": 9},
    ]
