"""The page with the use of an agent per day and version."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from access_app.role import Role
from agentcms.web.template_context import TemplateContext
from agents_app.views.access import get_agent, has_role_for, role_requirement
from agents_app.views.agent_header import AgentTab, header_context
from runs_app.display.usage_charts import PLOT_HEIGHT, PLOT_WIDTH, build_moves, build_series, build_usage_charts
from runs_app.display.usage_table import day_rows, total_rows
from runs_app.usage.report import UsageReport, build_report

RANGES = (7, 30, 90)  # days
DEFAULT_RANGE = 30


@require_safe
@login_required
def usage(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the figures of the runs of an agent that the user may read by a role."""
    agent = get_agent(request, agent_id)
    text = request.GET.get("days", "")
    day_count = int(text) if text in map(str, RANGES) else DEFAULT_RANGE
    missing_role = ""
    if not has_role_for(request, agent, Role.PUBLISHER):
        missing_role = f"Reading the figures of all runs {role_requirement(agent, Role.PUBLISHER)}"
    context = {
        **header_context(request, agent, AgentTab.RUNS),
        **report_context(build_report(agent, request.user, day_count)),
        "ranges": RANGES,
        "day_count": day_count,
        "missing_role": missing_role,
    }
    return render(request, "runs/usage.html", context)


def report_context(report: UsageReport) -> TemplateContext:
    """Return the template context with the charts and the tables of a report."""
    series = build_series(report)
    return {
        "report": report,
        "series": series,
        "charts": build_usage_charts(report, series) if report.usage else [],
        "moves": build_moves(report),
        "width": PLOT_WIDTH,
        "height": PLOT_HEIGHT,
        "totals": total_rows(report),
        "rows": day_rows(report),
    }
