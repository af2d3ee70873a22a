"""The page of what became of each of several agents."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agentcms.web.template_context import TemplateContext
from agents_app.editing.bulk import BulkResult


def render_results(
    request: HttpRequest, done_verb: str, results: Sequence[BulkResult], undo_ids: Sequence[str] = ()
) -> HttpResponse:
    """Render what became of each agent. With IDs, a button unarchives or restores what was archived or deleted."""
    failed = sum(not result.done for result in results)
    context: TemplateContext = {
        "nav": "agents",
        "done_verb": done_verb,
        "back": request.POST.get("back", ""),
        "results": results,
        "failed": failed,
        "done": len(results) - failed,
        "undo_ids": undo_ids,
        "agent_keys": request.POST.getlist("agent_key"),
    }
    return render(request, "agents/bulk_results.html", context)
