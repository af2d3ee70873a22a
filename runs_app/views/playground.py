"""The playground: one message, answered side by side by up to three configurations of an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.ids import uuid7
from agentcms.web.dialogs import is_htmx
from agentcms.web.list_state import parse_number
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archived import AgentArchived
from agents_app.models import Agent
from agents_app.views.access import get_agent
from runs_app.engine import engine
from runs_app.engine.start import cancel_run, start_run
from runs_app.forms import MessageForm
from runs_app.models import AgentRun, SavedInput
from runs_app.views.playground_columns import (
    MAX_COLUMNS,
    TryColumn,
    TryPageParams,
    build_columns,
    load_answers,
    parse_version_choice,
)
from runs_app.views.playground_page import (
    continues_conversation,
    default_choices,
    page_url,
    pointer_numbers,
    render_as_typed,
    render_playground,
)

RUN_IN_PROGRESS_MESSAGE = "The previous run is still in progress. Wait for it, or stop it."


@require_safe
@login_required
def playground(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Display the playground with the conversation of each column."""
    agent = get_agent(request, agent_id)
    params = TryPageParams.from_query(request.GET, default_choices(agent))
    columns = build_columns(agent, request.user, params)
    engine.preload()
    form = MessageForm(initial={"message": initial_message(request, agent, columns)})
    return render_playground(request, agent, params, columns, form)


@require_POST
@login_required
def arrange(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Add, remove or change columns, or start new conversations."""
    agent = get_agent(request, agent_id)
    params = TryPageParams.from_query(request.POST, default_choices(agent))
    action, _, number = request.POST.get("act", "").partition("-")
    if action == "add":
        params.add(next_choice(agent, params))
    elif action == "drop":
        params.drop(parse_number(number) - 1)
    elif action == "fresh":
        params.runs = ["" for _ in params.runs]
    return render_as_typed(request, agent, params)


@require_POST
@login_required
def run(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Start a run in every column that is available."""
    agent = get_agent(request, agent_id)
    require_granted_role(request.user, Role.EDITOR, agent)
    params = TryPageParams.from_query(request.POST, default_choices(agent))
    columns = build_columns(agent, request.user, params)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return render_playground(request, agent, params, columns, form, status=422)

    started = [start_column(request, column, form.cleaned_data["message"]) for column in columns]
    params.runs = [str(new.pk) if new else old for new, old in zip(started, params.runs, strict=True)]
    if not is_htmx(request):
        return redirect_with_errors(request, agent, params, columns)
    load_answers(columns, agent, request.user, params)
    response = render_playground(request, agent, params, columns, form)
    # The message stays in the field if any column could not start.
    clear = continues_conversation(columns) and not any(column.start_error for column in columns)
    response.headers["HX-Trigger"] = json.dumps({"runs-started": {"target": "body", "clear": clear}})
    return response


def redirect_with_errors(
    request: HttpRequest, agent: Agent, params: TryPageParams, columns: Sequence[TryColumn]
) -> HttpResponse:
    for column in columns:
        if column.start_error:
            messages.error(request, f"{column.label.capitalize()}: {column.start_error}")
    return redirect(page_url(agent, params))


def start_column(request: HttpRequest, column: TryColumn, text: str) -> AgentRun | None:
    """Start the run of a column. If that fails, set `start_error` of the column and return None."""
    if column.unavailable_reason or column.agent is None:
        return None
    if column.run and not column.run.is_finished:
        if column.has_memory:  # the new run would not know the answer
            column.start_error = RUN_IN_PROGRESS_MESSAGE
            return None
        cancel_run(column.run)  # the new answer replaces it on the page
    new_thread = f"try-{uuid7()}" if column.has_memory else ""
    key, resource = (column.thread.key, column.thread.resource) if column.thread else (new_thread, "")
    try:
        return start_run(column.agent, user=request.user, messages=text, thread=key, resource=resource)
    except ConfigError as error:
        column.start_error = " ".join(issue.message for issue in error.issues)
    except ApiError as error:
        column.start_error = error.error
    except AgentArchived as error:
        column.start_error = str(error)
    except Agent.DoesNotExist:  # deleted meanwhile
        raise Http404 from None
    return None


def next_choice(agent: Agent, params: TryPageParams) -> str:
    """Return the choice of an added column: the draft, or the newest version that no column has."""
    if agent.has_draft and "draft" not in params.choices:
        return "draft"
    live, head = pointer_numbers(agent)
    used = {parse_version_choice(choice) for choice in params.choices}
    used |= {number for number, choice in ((live, "live"), (head, "draft")) if choice in params.choices}
    newest = agent.versions.order_by("-version_number").values_list("version_number", flat=True)[: MAX_COLUMNS + 1]
    return next((f"v{number}" for number in newest if number not in used), "live")


def initial_message(request: HttpRequest, agent: Agent, columns: Sequence[TryColumn]) -> str:
    """Return the initial text of the field: a saved input, or the last message without a conversation."""
    if input_id := parse_number(request.GET.get("input", "")):
        inputs = SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=input_id)
        return inputs.values_list("text", flat=True).first() or ""
    if continues_conversation(columns):
        return ""
    return next((column.answers[-1].question for column in columns if column.answers), "")
