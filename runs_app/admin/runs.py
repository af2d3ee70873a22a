"""Read-only admin of runs, with their steps. Staff can have a run continued, or stop it."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Case, QuerySet, TextField, Value, When
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from access_app.admin_base.confirmation import confirmation_page
from access_app.admin_base.staff_access import ReadOnlyAdmin, StaffAccessMixin
from access_app.permissions import has_role_everywhere
from access_app.role import SHARED_LABEL, Role
from agentcms.plural import pluralize
from runs_app.engine import run_ends
from runs_app.engine.reaper import recover_run
from runs_app.models import AgentRun, RunStep

DETAIL_FIELDS = ("agent_team", "error", "warnings", "holder", "processes")
MAX_STEP_LENGTH = 20_000  # characters of a step
CONTINUE_HINT = (
    "Only durable runs that wait for a process, or whose process died, can be continued. The caller of a sub-agent "
    "continues its run."
)


class RunStepInline(StaffAccessMixin, admin.TabularInline):
    """The steps of a durable run."""

    model = RunStep
    extra = 0
    can_delete = False
    fields = ("key", "kind", "name", "state", "attempts", "started_at", "finished_at", "result_json")
    readonly_fields = fields
    verbose_name_plural = "steps of this durable run"

    def has_add_permission(self, request: HttpRequest, obj: AgentRun | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AgentRun | None = None) -> bool:
        return False

    @admin.display(description="Result")
    def result_json(self, step: RunStep) -> str:
        if step.result is None:
            return "–"
        text = json.dumps(step.result, indent=2, ensure_ascii=False)
        return format_html("<details><summary>Show</summary><pre>{}</pre></details>", text[:MAX_STEP_LENGTH])


@admin.register(AgentRun)
class RunAdmin(ReadOnlyAdmin):
    """Runs with their input, output and status."""

    change_form_template = "admin/runs_app/agentrun/change_form.html"
    actions = ("continue_now", "stop")
    inlines = (RunStepInline,)

    list_display = ("agent_key", "version_label", "status", "requested_by_name", "tokens", "created_at", "finished_at")
    list_filter = ("status", "target", "is_demo", "created_at")
    search_fields = ("agent_key", "requested_by_name", "visible_error")
    fields = (
        "agent_key",
        "team",
        "agent_team",
        "page",
        "status",
        "error",
        "version_label",
        "requested_by_name",
        "input_json",
        "output",
        "finish_reason",
        "usage",
        "cost",
        "is_demo",
        "warnings",
        "created_at",
        "started_at",
        "first_text_at",
        "finished_at",
        "cancel_requested_at",
        "is_durable",
        "suspended_at",
        "expires_at",
        "segment",
        "attempts",
        "lease_until",
        "holder",
        "processes",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentRun]:
        # The roles are read by details_visible_to(). The list shows no large column.
        runs = AgentRun.objects.for_user(request.user).with_roles(request.user).without_large_columns()
        # As in get_fields(): a search must not tell former members what an error says.
        visible = When(granted__isnull=False, then="error")
        return runs.annotate(visible_error=Case(visible, default=Value(""), output_field=TextField()))

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        if has_role_everywhere(request.user, Role.VIEWER):
            return ("agent_key", "requested_by_name", "error")
        return self.search_fields

    def get_fields(self, request: HttpRequest, obj: AgentRun | None = None) -> tuple[str, ...]:
        """Return the fields of the page. Former members see only the question and the answer of their own runs."""
        if obj is None or obj.details_visible_to(request.user):
            return self.fields
        return tuple(name for name in self.fields if name not in DETAIL_FIELDS)

    def get_inlines(self, request: HttpRequest, obj: AgentRun | None) -> tuple[Any, ...]:
        """Return the steps for those who may see more than the answer."""
        return self.inlines if obj is not None and obj.details_visible_to(request.user) else ()

    @admin.action(description="Continue now")
    def continue_now(self, request: HttpRequest, runs: QuerySet[AgentRun]) -> None:
        """Have the selected durable runs executed that wait for a process or lost theirs."""
        selected = [*runs]
        continued = sum(map(recover_run, selected))
        self.report_action(request, continued, len(selected), "run", "sent to a process.", CONTINUE_HINT)

    @admin.action(description="Stop")
    def stop(self, request: HttpRequest, runs: QuerySet[AgentRun]) -> HttpResponse | None:
        """Stop the selected runs that are not finished, after a confirmation."""
        unfinished = [*runs.filter(status__in=AgentRun.UNFINISHED_STATUSES).order_by("created_at")]
        if not unfinished:
            self.message_user(request, "The selected runs are finished already.", messages.WARNING)
            return None
        if "confirmed" not in request.POST:
            title = f"Stop {pluralize(len(unfinished), 'run')}?"
            return confirmation_page(self, request, "runs_app/stop", title, verb="Stop", runs=unfinished)
        for run in unfinished:
            run_ends.cancel_run(run.pk)
        LogEntry.objects.log_actions(request.user.pk or 0, unfinished, CHANGE, "Stopped.")
        self.message_user(request, f"{pluralize(len(unfinished), 'run')} asked to stop.")
        return None

    @admin.display(description="Team")
    def team(self, run: AgentRun) -> str:
        return run.owner_id or SHARED_LABEL

    @admin.display(description="Agent's team")
    def agent_team(self, run: AgentRun) -> str:
        return "–" if run.agent_owner_id is None else run.agent_owner_id or SHARED_LABEL

    @admin.display(description="Processes")
    def processes(self, run: AgentRun) -> str:
        """The processes that continued the run."""
        lines = ((f"{claim.claimed_at:%Y-%m-%d %H:%M:%S} UTC", claim.process_name) for claim in run.claims.all())
        return format_html_join("", "<p>{} {}</p>", lines) or "–"

    @admin.display(description="Version")
    def version_label(self, run: AgentRun) -> str:
        return run.version_label

    @admin.display(description="Tokens")
    def tokens(self, run: AgentRun) -> str:
        return str(run.usage.get("totalTokens", "–"))

    @admin.display(description="Input")
    def input_json(self, run: AgentRun) -> str:
        content = {name: run.input.get(name) for name in ("messages", "options")}
        return format_html("<pre>{}</pre>", json.dumps(content, indent=2, ensure_ascii=False))

    @admin.display(description="Page")
    def page(self, run: AgentRun) -> str:
        return format_html('<a href="{0}">{0}</a>', reverse("runs:view", args=[run.pk]))
