"""The rendering of the playground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from access_app.role import Role
from agentcms.web.dialogs import is_htmx, vary_on_htmx
from agentcms.web.template_context import TemplateContext
from agents_app.models import Agent
from agents_app.views.access import has_role_for, role_requirement
from agents_app.views.agent_header import AgentTab, header_context
from runs_app.forms.playground import MessageForm
from runs_app.models import SavedInput
from runs_app.views.playground.columns import (
    MAX_TRY_COLUMNS,
    PlaygroundColumn,
    PlaygroundParams,
    build_columns,
    parse_version_choice,
)
from runs_app.views.playground.conversations import conversation_link, conversation_options
from runs_app.views.playground.differences import mark_differences
from runs_app.views.playground.facts import FactField, fact_fields, may_try_facts
from runs_app.views.playground.variables import VariablesForm, submitted_texts, variables_of_all
from versions_app.views.lookups import pointer_numbers


def render_as_typed(
    request: HttpRequest, agent: Agent, params: PlaygroundParams | None = None, *, new_fields: bool = False
) -> HttpResponse:
    """Render the page with the submitted values."""
    params = params or page_params(request, agent, request.POST)
    columns = build_columns(agent, request.user, params)
    form = MessageForm(initial={"message": request.POST.get("message", "")})
    variables = variables_form(columns, submitted_texts(request.POST))
    return render_playground(request, agent, params, columns, form, variables, new_fields=new_fields)


def variables_form(
    columns: Sequence[PlaygroundColumn], texts: Mapping[str, str], *, is_submitted: bool = False
) -> VariablesForm:
    """Return the form of the variables of all columns."""
    configurations = [column.agent.configuration for column in columns if column.agent]
    return VariablesForm(variables_of_all(configurations), texts, is_submitted=is_submitted)


def render_playground(
    request: HttpRequest,
    agent: Agent,
    params: PlaygroundParams,
    columns: Sequence[PlaygroundColumn],
    form: MessageForm,
    variables: VariablesForm,
    *,
    status: int = 200,
    new_fields: bool = False,
) -> HttpResponse:
    """Render the page, or for htmx the columns and the elements that depend on them.

    With `new_fields`, htmx replaces the fields of the variables too, because other columns may have other ones.
    """
    context = {"form": form, "variables": variables, "new_fields": new_fields}
    context |= {"marks": params.marks, "marks_pending": params.marks and not mark_differences(columns)}
    context |= column_context(request, agent, columns)
    context["fact_fields"] = fact_inputs(request, agent, columns, params)
    if is_htmx(request):
        response = render(request, "runs/_playground_results.html", context, status=status)
        response.headers["HX-Replace-Url"] = page_url(agent, params)
    else:
        context = {**header_context(request, agent, AgentTab.PLAYGROUND), **context}
        response = render(request, "runs/playground.html", context, status=status)
    vary_on_htmx(response)
    return response


def column_context(request: HttpRequest, agent: Agent, columns: Sequence[PlaygroundColumn]) -> TemplateContext:
    has_memory = any(column.has_memory for column in columns)
    questions = {
        column.thread.pk: column.answers[0].question for column in columns if column.thread and column.answers
    }
    conversations = conversation_options(agent, request.user, dict(questions)) if has_memory else []
    for column in columns:
        column.thread_link = conversation_link(request, column.thread)
        column.is_listed = column.thread_value in {option.value for option in conversations}
    return {
        "agent": agent,
        "columns": columns,
        "choices": choice_options(agent),
        "reasons": disabled_reasons(request, agent, columns),
        "continues_conversation": continues_conversation(columns),
        "can_add": bool(next_choice(agent, [column.choice for column in columns])),
        "conversations": conversations,
        "inputs": SavedInput.objects.filter(user=request.user.pk, agent=agent),
    }


def fact_inputs(
    request: HttpRequest, agent: Agent, columns: Sequence[PlaygroundColumn], params: PlaygroundParams
) -> list[FactField]:
    """Return the inputs of the facts to try with, or none if no variant depends on any."""
    if not may_try_facts(request, agent):
        return []
    return fact_fields([column.agent.configuration for column in columns if column.agent], params.facts)


def page_params(request: HttpRequest, agent: Agent, query: QueryDict) -> PlaygroundParams:
    """Return the parameters of the page. Only publishers of the agent ask it as another caller."""
    params = PlaygroundParams.from_query(query, default_choices(agent))
    if params.facts and not may_try_facts(request, agent):
        params.facts = {}
    return params


def default_choices(agent: Agent) -> Sequence[str]:
    """Return the columns of a page without query parameters."""
    return ("live", "draft") if agent.has_draft else ("live",)


def choice_options(agent: Agent) -> list[tuple[str, str]]:
    """Return the options of the select of a column: values and labels."""
    live, head = pointer_numbers(agent)
    pointers = [("live", f"Live (v{live})"), *([("draft", f"Draft (v{head})")] if agent.has_draft else [])]
    versions = agent.versions.order_by("-version_number").values_list("version_number", "name")
    return [
        *pointers,
        ("unsaved", "Unsaved text"),
        *((f"v{number}", f"v{number}  {name}".strip()) for number, name in versions),
    ]


def next_choice(agent: Agent, choices: Sequence[str]) -> str:
    """Return the choice of an added column, which no column has: the draft, the newest version, or the unsaved text.

    Blank if the columns are as many as can be, or have all there is.
    """
    if len(choices) >= MAX_TRY_COLUMNS:
        return ""
    if agent.has_draft and "draft" not in choices:
        return "draft"
    live, head = pointer_numbers(agent)
    used = {parse_version_choice(choice) for choice in choices}
    used |= {number for number, choice in ((live, "live"), (head, "draft")) if choice in choices}
    newest = agent.versions.order_by("-version_number").values_list("version_number", flat=True)[: MAX_TRY_COLUMNS + 1]
    return next((f"v{number}" for number in newest if number not in used), "" if "unsaved" in choices else "unsaved")


def continues_conversation(columns: Sequence[PlaygroundColumn]) -> bool:
    """Return True if the next message continues a conversation."""
    return any(column.has_memory and (column.answers or column.chosen_thread) for column in columns)


def disabled_reasons(request: HttpRequest, agent: Agent, columns: Sequence[PlaygroundColumn]) -> list[str]:
    """Return all reasons why no run can be started, or none if any column can."""
    reasons: list[str] = []
    if not has_role_for(request, agent, Role.EDITOR):
        reasons.append(f"Running an agent {role_requirement(agent, Role.EDITOR)}")
    if all(column.unavailable_reason for column in columns):
        reasons += dict.fromkeys(column.unavailable_reason for column in columns)
    return reasons


def page_url(agent: Agent, params: PlaygroundParams) -> str:
    return f"{reverse('runs:playground', args=[agent.pk])}?{params.query}"
