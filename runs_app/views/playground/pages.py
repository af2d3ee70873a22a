"""The playground: one message, answered side by side by up to three configurations of an agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from access_app.permissions import require_granted_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.ids import parse_whole_number, uuid7
from agentcms.web.dialogs import is_htmx
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.editing.archive_guard import AgentArchived
from agents_app.models import Agent
from agents_app.views.access import get_agent
from memory_app.realms import user_realm
from runs_app.engine import run_ends
from runs_app.engine.start.run import start_run
from runs_app.forms.playground import MessageForm
from runs_app.models import AgentRun, SavedInput
from runs_app.requests.request_context import parse_request_context
from runs_app.views.playground.columns import PlaygroundColumn, PlaygroundParams, build_columns, load_columns
from runs_app.views.playground.facts import fact_values
from runs_app.views.playground.rendering import (
    continues_conversation,
    next_choice,
    page_params,
    page_url,
    render_as_typed,
    render_playground,
    variables_form,
)
from runs_app.views.playground.variables import submitted_texts, texts_of_values, typed_values

NEW_COLUMNS = ("add", "drop", "")  # actions after which the columns may have other variables; "" selects a version
RUN_IN_PROGRESS_MESSAGE = "The previous run is still in progress. Wait for it, or stop it."


@require_safe
@login_required
def playground(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Display the playground with the conversation of each column."""
    agent = get_agent(request, agent_id)
    params = page_params(request, agent, request.GET)
    columns = build_columns(agent, request.user, params)
    saved = find_saved_input(request, agent)
    form = MessageForm(initial={"message": saved.text if saved else initial_message(columns)})
    variables = variables_form(
        columns, texts_of_values(saved.variables if saved else initial_variable_values(columns))
    )
    return render_playground(request, agent, params, columns, form, variables)


@require_POST
@login_required
def arrange(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Add, remove or change columns, start new conversations, or mark the words that differ."""
    agent = get_agent(request, agent_id)
    params = page_params(request, agent, request.POST)
    action, _, number = request.POST.get("act", "").partition("-")
    if action == "add":
        params.add(next_choice(agent, params.choices))
    elif action == "drop":
        params.drop(parse_whole_number(number) - 1)
    elif action == "fresh":
        params.start_anew()
    elif action == "mark":
        params.marks = not params.marks
    return render_as_typed(request, agent, params, new_fields=action in NEW_COLUMNS)


@require_POST
@login_required
def run(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Start a run in every column that is available."""
    agent = get_agent(request, agent_id)
    require_granted_role(request.user, Role.EDITOR, agent)
    params = page_params(request, agent, request.POST)
    columns = build_columns(agent, request.user, params)
    form, texts = MessageForm(request.POST), submitted_texts(request.POST)
    variables = variables_form(columns, texts, is_submitted=True)
    if not (form.is_valid() & variables.is_valid()):  # both, so that all errors are shown at once
        return render_playground(request, agent, params, columns, form, variables, status=422)

    message, facts = form.cleaned_data["message"], fact_values(params.facts)
    started = [start_column(request, column, message, texts, facts) for column in columns]
    params.runs = [str(new.pk) if new else old for new, old in zip(started, params.runs, strict=True)]
    if not is_htmx(request):
        return redirect_with_errors(request, agent, params, columns)
    load_columns(columns, agent, request.user, params)
    response = render_playground(request, agent, params, columns, form, variables)
    # The message stays in the field if any column could not start.
    clear = continues_conversation(columns) and not any(column.start_error for column in columns)
    response.headers["HX-Trigger"] = json.dumps({"runs-started": {"target": "body", "clear": clear}})
    return response


def redirect_with_errors(
    request: HttpRequest, agent: Agent, params: PlaygroundParams, columns: Sequence[PlaygroundColumn]
) -> HttpResponse:
    for column in columns:
        if column.start_error:
            messages.error(request, f"{column.label.capitalize()}: {column.start_error}")
    return redirect(page_url(agent, params))


def start_column(
    request: HttpRequest, column: PlaygroundColumn, text: str, variables: Mapping[str, str], facts: JSONMapping
) -> AgentRun | None:
    """Start the run of a column. If that fails, set `start_error` of the column and return None.

    `variables` are the texts of the variables by name, `facts` those about a caller to try with.
    """
    if column.unavailable_reason or column.agent is None:
        return None
    replaced = column.run if column.run and not column.run.is_finished else None
    if replaced and column.has_memory:  # the new run would not know the answer
        column.start_error = RUN_IN_PROGRESS_MESSAGE
        return None
    try:
        options = run_options(request, column, variables)
        started = start_run(column.agent, user=request.user, messages=text, facts=facts, **options)
    except ConfigError as error:
        column.start_error = " ".join(issue_text(issue) for issue in error.issues)
    except ApiError as error:
        column.start_error = error.error
    except AgentArchived as error:
        column.start_error = str(error)
    except Agent.DoesNotExist:  # deleted meanwhile
        raise Http404 from None
    else:
        cancel_replaced(request, replaced)
        return started
    return None


def cancel_replaced(request: HttpRequest, replaced: AgentRun | None) -> None:
    """Cancel the unfinished run that a new one has replaced on the page.

    Not before the new one has started: if its start is refused, the column goes on with the earlier answer.
    """
    # The URL may be that of a colleague, whose run goes on.
    if replaced is not None and replaced.requested_by_id == request.user.pk:
        run_ends.cancel_run(replaced.pk)


def run_options(request: HttpRequest, column: PlaygroundColumn, variables: Mapping[str, str]) -> JSONObject:
    """Return the conversation and the values of the variables. Raise ConfigError if they are too long."""
    new_thread = f"try-{uuid7()}" if column.has_memory else ""
    is_own = column.thread is not None and column.thread.realm == user_realm(request.user.pk or 0)
    key, resource = (column.thread.key, column.thread.resource_key) if column.thread and is_own else (new_thread, "")
    values = typed_values(variables, column.agent.configuration) if column.agent else {}
    context = parse_request_context({"variables": values})
    return {"thread": key, "resource": resource, "request_context": context.values, "warnings": context.warnings}


def issue_text(issue: Issue) -> str:
    """Return an issue as a sentence, with the name of the variable if it is about one."""
    name = issue.field.removeprefix("requestContext.")
    return issue.message if name == issue.field else f"{name}: {issue.message}"


def find_saved_input(request: HttpRequest, agent: Agent) -> SavedInput | None:
    """Return the saved input of the user that the URL names, if any."""
    input_id = parse_whole_number(request.GET.get("input", ""))
    return SavedInput.objects.filter(user=request.user.pk, agent=agent, pk=input_id).first() if input_id else None


def initial_variable_values(columns: Sequence[PlaygroundColumn]) -> JSONMapping:
    """Return the values of the variables in the last run of the first column that has one."""
    return next((column.run.request_context for column in columns if column.run), {})


def initial_message(columns: Sequence[PlaygroundColumn]) -> str:
    """Return the initial text of the field: the last message, unless it belongs to a conversation."""
    if continues_conversation(columns):
        return ""
    return next((column.answers[-1].question for column in columns if column.answers), "")
