"""Admin of experiments: progress, figures, and budgets with what is spent of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from access_app.admin_base.staff_access import ReadOnlyAdmin
from access_app.permissions import has_role
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from evals_app.experiments.figures import count_results, find_known_cost
from evals_app.experiments.stopping import request_cancel
from evals_app.models import Experiment
from runs_app.display.formats import format_dollars

BUDGET_TEXTS: dict[str, Callable[[Any], str]] = {
    "maxCost": format_dollars,
    "maxTokens": lambda count: pluralize(count, "token"),
    "maxFailures": lambda count: pluralize(count, "failure"),
    "maxConsecutiveFailures": lambda count: f"{pluralize(count, 'failure')} in a row",
}

CANCEL_HINT = "Only unfinished experiments of teams in which you are an editor can be cancelled."


def cancel_if_there(experiment: Experiment) -> bool:
    """Cancel an experiment. Return False if it was deleted meanwhile."""
    try:
        request_cancel(experiment)
    except ApiError:
        return False
    return True


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    """Experiments without their results. They are records: only an unfinished one can be cancelled."""

    list_display = ("title", "dataset", "status", "progress", "failed_count", "cost", "budget_text", "created_at")
    list_filter = ("status", "verdict", "created_at")
    list_select_related = ("dataset",)
    search_fields = ("id__exact", "name", "target_id", "dataset__name")
    ordering = ("-created_at", "-id")
    fields = (
        *("title", "dataset", "dataset_version", "target_type", "target_id", "version_number", "scorers"),
        *("status", "verdict", "error", "stop_reason", "progress", "succeeded_count", "failed_count"),
        *("budget_text", "spent", "concurrency", "repeats", "seed"),
        *("memory_ids", "bar_list", "has_submitted_results"),
        *("created_by_name", "created_at", "started_at", "completed_at", "page"),
    )
    readonly_fields = ("title", "scorers", "progress", "budget_text", "spent", "memory_ids", "bar_list", "page")
    actions = ("cancel",)
    action_roles: ClassVar = {"cancel": Role.EDITOR}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Experiment]:
        return Experiment.objects.for_user(request.user).with_target_names(request.user)

    @admin.action(description="Cancel selected experiments")
    def cancel(self, request: HttpRequest, experiments: QuerySet[Experiment]) -> None:
        rows = [
            row
            for row in experiments.filter(status__in=Experiment.UNFINISHED).select_related("dataset")
            if has_role(request.user, Role.EDITOR, row.dataset.owner_id) and cancel_if_there(row)
        ]
        if rows:
            LogEntry.objects.log_actions(request.user.pk or 0, rows, CHANGE, "Cancelled.")
        end = "cancelled. Results stay." if rows else "cancelled."
        self.report_action(request, len(rows), len(experiments), "experiment", end, CANCEL_HINT)

    @admin.display(description="scorers")
    def scorers(self, experiment: Experiment) -> str:
        return ", ".join(experiment.scorer_keys or ()) or "those of each item, or of the dataset"

    @admin.display(description="memory")
    def memory_ids(self, experiment: Experiment) -> str:
        return ", ".join(f"{name} {value}" for name, value in experiment.memory.items()) or "None"

    @admin.display(description="bars")
    def bar_list(self, experiment: Experiment) -> str:
        return ", ".join(f"{scorer} {mean}" for scorer, mean in experiment.bars.items()) or "None"

    @admin.display(description="items")
    def progress(self, experiment: Experiment) -> str:
        noun = " results" if experiment.has_further_attempts else ""
        return f"{experiment.done_count}{noun} of {experiment.total_items}"

    @admin.display(description="cost")
    def cost(self, experiment: Experiment) -> str:
        # From the summary: `count_results` would be two queries for each row of the list.
        cost = find_known_cost(experiment, experiment.summary.get("cost"))
        return "-" if cost is None else f"${cost:.4f}"

    @admin.display(description="budget")
    def budget_text(self, experiment: Experiment) -> str:
        parts = [
            text(value) for name, text in BUDGET_TEXTS.items() if (value := experiment.budget.get(name)) is not None
        ]
        return ", ".join(parts) or "None"

    @admin.display(description="spent")
    def spent(self, experiment: Experiment) -> str:
        counts = count_results(experiment)
        numbers = f"{pluralize(counts['tokens'], 'token')}, {pluralize(counts['failed'], 'failure')}"
        cost = find_known_cost(experiment, counts["cost"])
        return f"{'cost unknown' if cost is None else f'${cost:.4f}'}, {numbers}"

    @admin.display(description="page")
    def page(self, experiment: Experiment) -> str:
        return format_html('<a href="{}">Open</a>', reverse("evals:experiment", args=[experiment.pk]))
