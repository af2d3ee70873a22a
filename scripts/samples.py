"""Sample data for the pages of the style guide, without a database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.utils import timezone

STATES = ("live", "draft", "broken")
EQUAL, REMOVED, ADDED = "equal", "removed", "added"
REFUND_RULE = "2. Never promise a refund "
REFUND_REPLY = 'Write **"I have passed this on"** instead.'
QUOTE_RULE = "3. Keep the customer's own words when you quote a problem."

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
    """A form with each kind of field."""

    name = forms.CharField(initial="Support triage", help_text="Shown in lists.")
    description = forms.CharField(initial="", widget=forms.Textarea(attrs={"rows": 2}), required=False)
    provider = forms.ChoiceField(choices=[("anthropic", "Anthropic"), ("openai", "OpenAI"), ("demo", "Demo")])
    model_name = forms.CharField(label="Model", initial="claude-sonnet-5", help_text="Any model of the provider.")
    temperature = forms.DecimalField(required=False)
    locked = forms.CharField(label="ID", initial="support-triage", disabled=True)
    version_name = forms.CharField(label="Name", required=False, widget=forms.TextInput(attrs={"data-of-save": True}))
    message = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2, "data-of-save": True}))
    options = forms.CharField(
        label="Default options",
        widget=forms.Textarea(attrs={"data-editor": "json", "rows": 8}),
        help_text="Options of each run.",
        required=False,
    )
    tools = forms.Field(required=False)
    instructions = forms.CharField(widget=forms.Textarea(attrs={"data-editor": "text", "rows": 20}), required=False)


def build_sign_in_form() -> forms.Form:
    """Return the sign-in form with an error."""

    class SignInForm(forms.Form):
        username = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "username"}))
        password = forms.CharField(widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}))

    form = SignInForm({"username": "maren", "password": "x"})
    form.add_error(None, "The username or the password is wrong. Both are case-sensitive.")
    return form


class SampleUser:
    """A user who is signed in, without a row in a database."""

    pk = 1
    is_authenticated = is_staff = True
    username = "maren"

    def get_full_name(self) -> str:
        return "Maren Holt"


def line(kind: str, old: int | None, new: int | None, *parts: tuple[str, str], change: int = 0) -> dict[str, Any]:
    """Build a row of a unified comparison. old, new: the line numbers."""
    old_side, new_side = old and {"number": old}, new and {"number": new}
    return {"kind": kind, "old": old_side, "new": new_side, "spans": build_parts(parts), "change": change}


def build_parts(parts: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"kind": kind, "text": text} for kind, text in parts]


def side(number: int, *parts: tuple[str, str]) -> dict[str, Any]:
    """Build one side of a row in a comparison side by side."""
    return {"number": number, "spans": build_parts(parts)}


def text_section(label: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Build the comparison of a text, with a block for each row."""
    blocks = [{"rows": [row], "folded": row["kind"] == "folded", "key": str(index)} for index, row in enumerate(rows)]
    return {"label": label, "blocks": blocks}


def version(number: int, minutes: int, author: str, source: str, summary: str, **more: Any) -> dict[str, Any]:
    """Build an entry of a timeline."""
    created_at = timezone.now() - timedelta(minutes=minutes)
    row = {
        "author_name": author,
        "get_source_display": source,
        "created_at": created_at,
        "based_on": number - 1,
        **more,
    }
    return {"number": number, "note": summary, "version": row, **{f"is_{name}": more.get(name) for name in STATES}}


def agent(name: str, description: str, model: str, live: int, **more: Any) -> dict[str, Any]:
    """Build a row of the list of agents. live: the number of the live version."""
    defaults = {"id": name, "tools": 3, "owner": "newsroom", "author": "Maren Holt"}
    return {**defaults, "name": name, "description": description, "model": model, "live": live, **more}


def build_context() -> dict[str, Any]:
    """Return the template context of every page of the guide."""
    return {
        "now": timezone.now(),
        "earlier": timezone.now() - timedelta(hours=3, minutes=12),
        "form": build_form(),
        "tools": tools(),
        "page": Paginator(range(312), 50).page(2),
        "agents": agents(),
        "sample": {"pk": "support-triage"},
        "versions": versions(),
        "unified": text_section("Instructions", unified_rows()),
        "sides": text_section("Instructions", side_by_side_rows()),
        "items": items(),
        "paths": paths(),
    }


def build_form() -> forms.Form:
    """Return the form with two errors: the name is missing, and the options are not valid JSON."""
    return SampleForm(
        {
            "name": "",
            "provider": "anthropic",
            "model_name": "claude-sonnet-5",
            "instructions": INSTRUCTIONS,
            "options": '{\n  "temperature": 0.2,\n  "maxSteps": 8,\n  "topP": 0.95,,\n  "stop": ["\\n\\n"]\n}',
        }
    )


def tools() -> dict[str, Any]:
    """Return a picker with two chosen tools and one that is not registered."""
    return {
        "name": "tools",
        "label": "Tools",
        "noun": "tool",
        "chosen": [
            {"key": "lookup_crm", "title": "lookup_crm", "is_missing": True},
            {"key": "search_handbook", "title": "Search the handbook", "description": "Finds passages by meaning."},
            {"key": "create_ticket", "title": "Create a ticket", "description": "Opens a ticket in the queue named."},
        ],
    }


def agents() -> list[dict[str, Any]]:
    night = "Answers outside office hours."
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
        "custom_message": "The legal department asked for a clear limit of 200 €.",
    }
    return [
        version(9, 4, "Maren Holt", "editor", "Instructions +12 −3 · Tools +search · Model a, now b", draft=True),
        version(8, 192, "release-bot", "API", "Default options temperature 0.4, now 0.2"),
        version(7, 2900, "Idris Okafor", "editor", "Instructions +4 −4", live=True, **named),
        version(6, 5100, "Maren Holt", "restore", "Restored from v3", broken=True),
        version(5, 9100, "import", "import", "Tools +find_order, send_mail · Metadata 2 paths"),
    ]


def unified_rows() -> list[dict[str, Any]]:
    """Return the rows of a text comparison, with each old line above the new one."""
    before = ((EQUAL, REFUND_RULE), (REMOVED, "of"), (EQUAL, " over "), (REMOVED, "500"), (EQUAL, " €."))
    after = ((EQUAL, REFUND_RULE), (EQUAL, "over "), (ADDED, "200"), (EQUAL, " €. "), (ADDED, REFUND_REPLY))
    return [
        {"kind": "folded", "count": 4},
        line(EQUAL, 5, 5, (EQUAL, "# Rules")),
        line(REMOVED, 6, None, *before, change=1),
        line(ADDED, None, 6, *after),
        line(EQUAL, 7, 7, (EQUAL, QUOTE_RULE)),
        line(ADDED, None, 8, (EQUAL, "4. Do not translate them."), change=2),
        line(EQUAL, 8, 9, (EQUAL, "")),
        {"kind": "folded", "count": 31},
    ]


def side_by_side_rows() -> list[dict[str, Any]]:
    """Return the rows of the same comparison, with old and new lines side by side."""
    before = side(6, (EQUAL, REFUND_RULE), (EQUAL, "over "), (REMOVED, "500"), (EQUAL, " €."))
    after = side(6, (EQUAL, REFUND_RULE), (EQUAL, "over "), (ADDED, "200"), (EQUAL, " €. "), (ADDED, REFUND_REPLY))
    return [
        {"kind": "folded", "count": 4},
        {"kind": "equal", "old": side(5, (EQUAL, "# Rules")), "new": side(5, (EQUAL, "# Rules"))},
        {"kind": "changed", "change": 1, "old": before, "new": after},
        {"kind": "equal", "old": side(7, (EQUAL, QUOTE_RULE)), "new": side(7, (EQUAL, QUOTE_RULE))},
        {"kind": "changed", "change": 2, "old": None, "new": side(8, (EQUAL, "4. Do not translate them."))},
        {"kind": "changed", "change": 3, "old": side(8, (EQUAL, "Be brief.")), "new": None},
        {"kind": "folded", "count": 31},
    ]


def items() -> list[dict[str, Any]]:
    """Return the changes of a list: items that are added, removed, moved and unchanged."""
    return [
        {"kind": "added", "title": "Search the handbook", "key": "search_handbook", "change": 4},
        {"kind": "removed", "title": "", "key": "lookup_crm", "change": 5},
        {"kind": "moved", "title": "The time", "key": "now", "old_position": 4, "new_position": 1, "change": 6},
        {"kind": "equal", "title": "Create a ticket", "key": "create_ticket"},
    ]


def paths() -> list[dict[str, Any]]:
    """Return the changes of a JSON field, by path."""
    return [
        {"path": "temperature", "old": "0.4", "new": "0.2", "change": 7},
        {"path": "stop[0]", "old": None, "new": '"\\n\\n"', "change": 8},
        {"path": "headers.X-Team", "old": '"news"', "new": None, "change": 9},
    ]
