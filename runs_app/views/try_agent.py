"""Try it: one message, answered side by side by up to three configurations of an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.ids import uuid7
from agentcms.web.dialogs import is_htmx
from agentcms.web.list_state import parse_number
from agents_app.configuration.schema import ConfigError
from agents_app.models import Agent
from agents_app.views.access import get_agent, has_role_for
from agents_app.views.status import agent_status, find_drafts, find_warnings
from runs_app.engine import engine
from runs_app.engine.start import cancel_run, start_run
from runs_app.forms import MessageForm
from runs_app.models import AgentRun, SavedInput
from runs_app.views.try_columns import (
    MAX_COLUMNS,
    TryColumn,
    TryPageParams,
    build_columns,
    load_answers,
    parse_version_choice,
)


@require_safe
@login_required
def playground(request: HttpRequest, agent_id: str) -> HttpResponse:
    """The page, with what was said in each of its columns."""
    agent = get_agent(request, agent_id)
    asked = TryPageParams.of(request.GET, default_choices(agent))
    found = build_columns(agent, request.user, asked)
    engine.preload()
    return render_playground(
        request, agent, asked, found, MessageForm(initial={"message": initial_message(request, agent, found)})
    )


@require_POST
@login_required
def arrange(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Other columns: one more, one less, another choice, or all of them anew."""
    agent = get_agent(request, agent_id)
    asked = TryPageParams.of(request.POST, default_choices(agent))
    act, _, place = request.POST.get("act", "").partition("-")
    if act == "add":
        asked.add(next_choice(agent, asked))
    elif act == "drop":
        asked.drop(parse_number(place) - 1)
    elif act == "fresh":
        asked.runs = ["" for _ in asked.runs]
    return render_as_typed(request, agent, asked)


def render_as_typed(request: HttpRequest, agent: Agent, asked: TryPageParams | None = None) -> HttpResponse:
    """The page with all that was typed there."""
    asked = asked or TryPageParams.of(request.POST, default_choices(agent))
    form = MessageForm(initial={"message": request.POST.get("message", "")})
    return render_playground(request, agent, asked, build_columns(agent, request.user, asked), form)


@require_POST
@login_required
def run(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Ask every column that can answer."""
    agent = get_agent(request, agent_id)
    require_granted_role(request.user, Role.EDITOR, agent)
    asked = TryPageParams.of(request.POST, default_choices(agent))
    found = build_columns(agent, request.user, asked)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return render_playground(request, agent, asked, found, form, status=422)

    begun = [start_column(request, column, form.cleaned_data["message"]) for column in found]
    asked.runs = [str(new.pk) if new else old for new, old in zip(begun, asked.runs, strict=True)]
    if not is_htmx(request):
        for column in found:
            if column.fault:
                messages.error(request, f"{column.label.capitalize()}: {column.fault}")
        return redirect(page_url(agent, asked))
    load_answers(found, agent, request.user, asked)
    response = render_playground(request, agent, asked, found, form)
    clear = continues_conversation(found) and not any(
        column.fault for column in found
    )  # what was not asked is not lost
    response.headers["HX-Trigger"] = json.dumps({"runs-started": {"target": "body", "clear": clear}})
    return response


def start_column(request: HttpRequest, column: TryColumn, text: str) -> AgentRun | None:
    """Start the run of a column; where it cannot, the column says why."""
    if column.why_not or column.stored is None:
        return None
    if column.run and not column.run.is_finished:
        if column.remembers:  # a follow-up would not know the answer
            column.fault = "It is still answering. Wait for it, or stop it."
            return None
        cancel_run(column.run)  # the new answer takes its place, and nobody would read it
    thread = (column.thread or f"try-{uuid7()}") if column.remembers else ""
    try:
        return start_run(column.stored, user=request.user, messages=text, thread=thread)
    except ConfigError as error:
        column.fault = " ".join(issue.message for issue in error.issues)
    except ApiError as error:
        column.fault = error.error
    except Agent.DoesNotExist:  # it was deleted meanwhile
        raise Http404 from None
    return None


def default_choices(agent: Agent) -> Sequence[str]:
    """What stands side by side when nothing else was asked for."""
    return ("live", "draft") if agent.has_draft else ("live",)


def next_choice(agent: Agent, asked: TryPageParams) -> str:
    """What one more column shows: the draft, else the newest version that is in none yet."""
    if agent.has_draft and "draft" not in asked.choices:
        return "draft"
    live, head = pointer_numbers(agent)
    shown = {parse_version_choice(choice) for choice in asked.choices}
    shown |= {number for number, word in ((live, "live"), (head, "draft")) if word in asked.choices}
    newest = agent.versions.order_by("-version_number").values_list("version_number", flat=True)[: MAX_COLUMNS + 1]
    return next((f"v{number}" for number in newest if number not in shown), "live")


def pointer_numbers(agent: Agent) -> tuple[int, int]:
    """The numbers of the live and the head version."""
    live, head = cast(Any, (agent.active_version, agent.head_version))
    return live.version_number, head.version_number


def initial_message(request: HttpRequest, agent: Agent, found: Sequence[TryColumn]) -> str:
    """What stands in the field at first: a saved input, or what was asked last where nothing goes on."""
    if kept := parse_number(request.GET.get("input", "")):
        own = SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=kept)
        return own.values_list("text", flat=True).first() or ""
    if continues_conversation(found):
        return ""
    return next((column.answers[-1].question for column in found if column.answers), "")


def continues_conversation(found: Sequence[TryColumn]) -> bool:
    """Whether what is asked next goes on with a conversation."""
    return any(column.remembers and column.answers for column in found)


def page_url(agent: Agent, asked: TryPageParams) -> str:
    return f"{reverse('runs:try_it', args=[agent.pk])}?{asked.query}"


def choice_options(agent: Agent) -> list[tuple[str, str]]:
    """What may run in a column, as values and words for a select."""
    live, head = pointer_numbers(agent)
    known = [("live", f"Live (v{live})"), *([("draft", f"Draft (v{head})")] if agent.has_draft else [])]
    named = agent.versions.order_by("-version_number").values_list("version_number", "name")
    return [
        *known,
        ("unsaved", "Unsaved text"),
        *((f"v{number}", f"v{number}  {name}".strip()) for number, name in named),
    ]


def disabled_reasons(request: HttpRequest, agent: Agent, found: Sequence[TryColumn]) -> list[str]:
    """Why nothing can be asked: every reason there is, or nothing where something can."""
    why: list[str] = []
    if not has_role_for(request, agent, Role.EDITOR):
        where = f"for {agent.owner_id}" if agent.owner_id else "for the shared space"
        why.append(f"Running an agent needs the role editor {where}. Ask a manager of the team for it.")
    if all(column.why_not for column in found):
        why += dict.fromkeys(column.why_not for column in found)
    return why


def render_playground(
    request: HttpRequest, agent: Agent, asked: TryPageParams, found: Sequence[TryColumn], form: Any, status: int = 200
) -> HttpResponse:
    """The page; for htmx the columns and what depends on them."""
    warned = find_warnings([agent])[agent.pk]
    context = {
        "nav": "agents",
        "agent": agent,
        "status": agent_status(agent, warned, find_drafts([agent]).get(agent.pk)),
        "form": form,
        "columns": found,
        "choices": choice_options(agent),
        "asked": asked,
        "address": page_url(agent, asked),
        "reasons": disabled_reasons(request, agent, found),
        "goes_on": continues_conversation(found),
        "may_add": len(found) < MAX_COLUMNS,
        "inputs": SavedInput.objects.filter(user=request.user.pk, agent=agent),
    }
    response = render(request, "runs/_tried.html" if is_htmx(request) else "runs/try_it.html", context, status=status)
    response.headers["Vary"] = "HX-Request, Cookie"
    if is_htmx(request):
        response.headers["HX-Replace-Url"] = context["address"]
    return response
