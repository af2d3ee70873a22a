"""Pages that display runs: the list and a single run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from access_app.permissions import has_role, require_role
from access_app.role import Role
from agentcms.errors import Conflict
from agentcms.ids import parse_whole_number
from agentcms.tracing.spans import trace_url
from agentcms.web.error_handlers import conflict_page
from agentcms.web.template_context import TemplateContext
from agentcms.wire.canonical import text_or_json
from agents_app.configuration.display import config_sections
from agents_app.configuration.variants import CONDITIONAL
from agents_app.models import Agent
from agents_app.views.access import can_choose_agent, get_agent
from agents_app.views.agent_header import AgentTab, header_context
from evals_app.experiments.scoring import scorer_title
from memory_app.views.recall import recalled_row
from runs_app.approvals.lookup import waiting_calls_below
from runs_app.display.answer import RunView, add_waits, build_run_views, input_messages, total_cost
from runs_app.display.formats import model_name
from runs_app.display.memory_of_run import build_memory
from runs_app.display.recalled_messages import recalled_messages
from runs_app.forms.score import PERSON_SCORER, ScoreForm
from runs_app.models import AgentRun, Score
from runs_app.requests.facts import VARIANTS
from runs_app.views.approval_cards import add_cards
from runs_app.views.list_filters import RunListState
from runs_app.views.lookups import find_agent, get_run, readable_runs
from versions_app.models import AgentVersion

MAX_THREAD_RUNS = 20
UNFINISHED_MESSAGE = "The run has not finished. Score it when it has."


@require_safe
@login_required
def run_list(request: HttpRequest) -> HttpResponse:
    """Display the runs of users, newest first, without child runs."""
    listing = RunListState(readable_runs(request), request.user, request.GET)
    context = {"nav": "runs", "listing": listing, "available_filters": [*listing.available_filters()]}
    context["can_choose_agent"] = partial(can_choose_agent, request)  # for an empty list only
    return render(request, "runs/list.html", context)


@require_safe
@login_required
def agent_runs(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Display the runs of an agent that the user may read, newest first, without child runs."""
    agent = get_agent(request, agent_id)
    listing = RunListState(readable_runs(request), request.user, request.GET, of_agent=agent)
    context = {"listing": listing, "available_filters": [*listing.available_filters()]}
    return render(request, "runs/agent_runs.html", {**header_context(request, agent, AgentTab.RUNS), **context})


@require_safe
@login_required
def view(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Display a run: input, answer, timeline, usage and the configuration of the agent."""
    return render_run(request, get_run(request, run_id), ScoreForm())


@require_POST
@login_required
def score(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Store the score of a person, or display the run with the errors of the form."""
    run = get_run(request, run_id)
    require_role(request.user, Role.EDITOR, run.owner_id)
    if not run.is_finished:
        return conflict_page(request, Conflict(UNFINISHED_MESSAGE))
    form = ScoreForm(request.POST)
    if not form.is_valid():
        return render_run(request, run, form, status=400)
    values = form.cleaned_data
    Score.objects.create(
        run=run,
        scorer=PERSON_SCORER,
        score=values["score"],
        reason=values["comment"],
        source=Score.Source.PERSON,
        created_by_id=request.user.pk,
    )
    return redirect(f"{reverse('runs:view', args=[run.pk])}#scores")


def render_run(request: HttpRequest, run: AgentRun, form: ScoreForm, status: int = 200) -> HttpResponse:
    agent = find_agent(request, run)
    version = find_version_of_run(agent, run)
    add_waits(run_view := describe_run(request, run))
    shows_configuration = run.configuration_visible_to(request.user)
    context = {
        "nav": "runs",
        "base_template": "agents/base.html" if agent else "base.html",
        **(header_context(request, agent, AgentTab.RUNS) if agent else {}),
        "run": run,
        "answer": run_view,
        "name": run.configuration.get("name") if shows_configuration else run.agent_key,
        "agent": agent,
        "version": version,
        "replaced_model": replaced_model(version, run_view),
        **input_context(run, shows_configuration=shows_configuration),
        "children": run_view.children,
        "thread_runs": thread_runs(request, run),
        **details_context(request, run_view),
        "score_form": form if run.is_finished and has_role(request.user, Role.EDITOR, run.owner_id) else None,
        "parts": config_sections(run.configuration) if shows_configuration else [],
    }
    return render(request, "runs/view.html", context, status=status)


@require_safe
@login_required
def answer_fragment(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Render the answer of a run as a fragment, which replaces the streamed answer."""
    return render(request, "runs/_answer.html", {"answer": describe_run(request, get_run(request, run_id))})


@require_safe
@login_required
def waiting_state(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Return whether the run still waits for as many calls as the page shows. Somebody else may have decided one."""
    run = get_run(request, run_id)
    is_suspended = run.status == AgentRun.Status.SUSPENDED
    # Readers without details are shown no calls.
    count = len(waiting_calls_below(run)) if is_suspended and run.details_visible_to(request.user) else 0
    response = HttpResponse(status=204)
    if not is_suspended or parse_whole_number(request.GET.get("calls", "")) != count:
        trigger_client_event(response, "approval-decided", {"target": "body"})
    return response


def describe_run(request: HttpRequest, run: AgentRun) -> RunView:
    """Return the view of a run, with the calls that the reader may decide."""
    (run_view,) = build_run_views([run], request.user)
    add_cards([run_view], request.user)
    return run_view


def find_version_of_run(agent: Agent | None, run: AgentRun) -> AgentVersion | None:
    """Return the version of a run, or None if it was deleted."""
    if agent is None or run.version_id is None:
        return None
    return AgentVersion.objects.filter(agent=agent, pk=run.version_id).first()


def replaced_model(version: AgentVersion | None, run_view: RunView) -> str:
    """Return the model of the version, or of its chosen variant, if the demo model replaced it, or a blank text."""
    run = run_view.run
    index = (run.input.get(VARIANTS) or {}).get("model")
    if index is not None:
        variants = (run.configuration.get(CONDITIONAL) or {}).get("model") or []
        model = variants[index]["value"] if index < len(variants) else {}
    else:
        model = version.snapshot["model"] if version else {}
    if not run_view.uses_demo_model or not model or model == run.configuration.get("model"):
        return ""
    return model_name(model)


def input_context(run: AgentRun, *, shows_configuration: bool) -> TemplateContext:
    """Return the context of the input: messages, options, and variables with the instructions that they filled."""
    facts = run.facts if shows_configuration else {}
    return {
        "input_messages": input_messages(run),
        "options": format_options(run),
        # PostgreSQL does not keep the order of JSON keys.
        "variables": [(name, text_or_json(value)) for name, value in sorted(run.request_context.items())],
        "facts": [(name, text_or_json(value)) for name, value in sorted(facts.items())],
        "variants": (run.input.get(VARIANTS) or {}).items() if shows_configuration else [],
        "sent_instructions": run.input.get("instructions", "") if shows_configuration else "",
    }


def details_context(request: HttpRequest, run_view: RunView) -> TemplateContext:
    """Return cost, trace, scores, and the recalled messages with links to their conversations.

    Readers who may only see the question and the answer get nothing.
    """
    if not run_view.has_details:
        return {}
    run = run_view.run
    messages, hidden = recalled_messages(run, request.user)
    return {
        "total_cost": total_cost(run),
        "trace_url": trace_url(run.traceparent),
        "remembered": build_memory(run, request.user),
        "scores": scores_with_names(run),
        "recalled": [recalled_row(request, *item) for item in messages],
        "hidden_recalled": hidden,
    }


def scores_with_names(run: AgentRun) -> list[tuple[Score, str]]:
    """Return the scores of a run, each with who or what has given it."""
    return [(score, name_of_scorer(score, run.agent_owner_id)) for score in run.scores.select_related("created_by")]


def name_of_scorer(score: Score, owner_id: str | None) -> str:
    """Return the user who has given a score, or the name of its scorer. That of an unknown scorer is its ID."""
    if score.source == Score.Source.PERSON:
        return score.created_by.get_username() if score.created_by else "A person"
    return scorer_title(score.scorer, owner_id)


def format_options(run: AgentRun) -> str:
    """Return the options of a run as JSON, or a blank text."""
    options: Any = run.input.get("options") if isinstance(run.input, dict) else None
    return json.dumps(options, ensure_ascii=False, indent=2) if options else ""


def thread_runs(request: HttpRequest, run: AgentRun) -> Sequence[AgentRun]:
    """Return the runs of the same conversation before and after a run, oldest first, with the run itself."""
    if run.thread_id is None:
        return []
    # Each of both may have many kilobytes, and the page only links to the runs.
    runs = readable_runs(request).filter(thread=run.thread_id, parent=None).defer("stored_configuration", "output")
    earlier = [*runs.filter(created_at__lte=run.created_at).order_by("-created_at")[:MAX_THREAD_RUNS]]
    later = [*runs.filter(created_at__gt=run.created_at).order_by("created_at")[:MAX_THREAD_RUNS]]
    around = [*reversed(earlier), *later]
    start = max(0, min(len(earlier) - MAX_THREAD_RUNS // 2, len(around) - MAX_THREAD_RUNS))
    return around[start : start + MAX_THREAD_RUNS]
