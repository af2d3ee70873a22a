"""The pages that read runs: their list, and one of them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents_app.configuration.display import config_sections
from runs_app.display.answer import RunView, build_run_views, input_messages, total_cost
from runs_app.display.formats import model_name
from runs_app.models import AgentRun
from runs_app.views.list_filters import RunListState
from runs_app.views.lookups import find_agent, get_run, readable_runs

MAX_THREAD_RUNS = 20


@require_safe
@login_required
def run_list(request: HttpRequest) -> HttpResponse:
    """The runs that people asked for, newest first."""
    listing = RunListState(readable_runs(request), request.user, request.GET)
    context = {"nav": "runs", "listing": listing, "offers": [*listing.offers()]}
    return render(request, "runs/list.html", context)


@require_safe
@login_required
def view(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run: what was asked, what came of it, where the time went, and what the agent was then."""
    run = get_run(request, run_id)
    agent = find_agent(request, run)
    version = find_version(agent, run)
    (answer,) = build_run_views([run])
    context = {
        "nav": "runs",
        "run": run,
        "answer": answer,
        "agent": agent,
        "kept": [version.version_number] if version else [],
        "stood_in_for": replaced_model(version, answer),
        "messages_sent": input_messages(run),
        "options": format_options(run),
        "children": answer.children,
        "whole": total_cost(run),
        "scores": run.scores.all(),
        "others": thread_runs(request, run),
        "parts": config_sections(run.configuration) if run.configuration_visible_to(request.user) else [],
    }
    return render(request, "runs/view.html", context)


@require_safe
@login_required
def answer(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The answer alone, a fragment: what a column shows once its run is over."""
    (shown,) = build_run_views([get_run(request, run_id)])
    return render(request, "runs/_answer.html", {"answer": shown})


def find_version(agent: Any, run: AgentRun) -> Any:
    """The version that ran, where it is still kept."""
    if agent is None or run.version_id is None:
        return None
    return agent.versions.filter(pk=run.version_id).first()


def replaced_model(version: Any, answer: RunView) -> str:
    """The model of the version, where the demo model was asked in its place."""
    model = version.snapshot["model"] if version else {}
    if not answer.uses_demo_model or not model or model == answer.run.configuration.get("model"):
        return ""
    return model_name(model)


def format_options(run: AgentRun) -> str:
    """The options of the call as JSON, or nothing."""
    options: Any = run.input.get("options") if isinstance(run.input, dict) else None
    return json.dumps(options, ensure_ascii=False, indent=2) if options else ""


def thread_runs(request: HttpRequest, run: AgentRun) -> Any:
    """The runs of the same conversation, oldest first, where there is more than this one."""
    if run.thread_id is None:
        return []
    runs = readable_runs(request).filter(thread=run.thread_id, parent=None).order_by("created_at")
    return runs.defer("configuration", "output")[:MAX_THREAD_RUNS]
