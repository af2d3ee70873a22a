"""Pages of background tasks: the list, and the button that cancels a task."""

from __future__ import annotations

from functools import cached_property, partial
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from access_app.caller import Caller
from access_app.permissions import can_have_role
from access_app.role import Role
from agentcms.web.list_state import Chip, ListState
from agents_app.models import Agent
from agents_app.views.access import can_choose_agent
from runs_app.background.endings import cancel_task
from runs_app.display.formats import format_duration
from runs_app.display.transcript import ToolCallPart
from runs_app.models import BackgroundTask
from runs_app.models.background_task import BackgroundTaskQuerySet

TASKS_PER_PAGE = 50
ENDED_MESSAGE = "The task has ended already."


class TaskRow:
    """A row of the list."""

    def __init__(self, task: BackgroundTask, agent_name: str) -> None:
        self.task, self.agent_name = task, agent_name

    @property
    def tool_title(self) -> str:
        return ToolCallPart(self.task.call_id, self.task.tool).title

    @property
    def duration_text(self) -> str:
        return format_duration(self.task.duration) if self.task.started_at else ""

    @property
    def progress_text(self) -> str:
        """The text of the progress that the tool reported, or the error."""
        progress = self.task.progress or {}
        return self.task.error or str(progress.get("text") or "")


class TaskListState(ListState):
    """The filters and the page in the query of a URL. Invalid values are ignored."""

    def __init__(self, user: Caller, params: QueryDict) -> None:
        self.user, self.params = user, params
        status = params.get("status", "")
        self.status = status if status in BackgroundTask.Status.values else ""
        # PostgreSQL refuses a NUL in a parameter.
        self.agent = params.get("agent", "").replace("\0", "")

    @property
    def is_filtered(self) -> bool:
        return bool(self.status or self.agent)

    @cached_property
    def matches(self) -> BackgroundTaskQuerySet:
        filters = {"status": self.status, "agent_key": self.agent}
        return BackgroundTask.objects.for_user(self.user).filter(**{k: v for k, v in filters.items() if v})

    @cached_property
    def page(self) -> Page[BackgroundTask]:
        tasks = self.matches.defer("arguments", "result")  # which may be long
        return Paginator(tasks, TASKS_PER_PAGE).get_page(self.params.get("page"))

    @cached_property
    def rows(self) -> list[TaskRow]:
        tasks = [*self.page.object_list]
        names = Agent.objects.for_user(self.user).names_of({task.agent_key for task in tasks})
        return [TaskRow(task, names[task.agent_key]) for task in tasks]

    @property
    def has_unfinished(self) -> bool:
        return any(not row.task.is_finished for row in self.rows)

    @property
    def chips(self) -> list[Chip]:
        names = Agent.objects.for_user(self.user).names_of(filter(None, [self.agent]))
        chips = [Chip("Agent", names[self.agent], self.url(agent=None))] if self.agent else []
        label = BackgroundTask.Status(self.status).label if self.status else ""
        return [*chips, *([Chip("Status", label, self.url(status=None))] if label else [])]

    def available_filters(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the filters that can be added: a label and its choices with their URLs."""
        if self.status:
            return []
        return [("Status", [(label, self.url(status=key)) for key, label in BackgroundTask.Status.choices])]


@require_safe
@login_required
def task_list(request: HttpRequest) -> HttpResponse:
    """Display the background tasks of runs that the user may read, newest first."""
    listing = TaskListState(request.user, request.GET)
    context = {"nav": "runs", "listing": listing, "available_filters": listing.available_filters()}
    context["can_cancel"] = can_have_role(request.user, Role.EDITOR)
    context["can_choose_agent"] = partial(can_choose_agent, request)  # for an empty list only
    return render(request, "background_tasks/list.html", context)


@require_POST
@login_required
def cancel_listed_task(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Cancel a background task."""
    task = get_object_or_404(BackgroundTask.objects.for_user(request.user), pk=task_id)
    if not can_have_role(request.user, Role.EDITOR):
        raise PermissionDenied("Cancelling a task needs the Editor role.")
    if cancel_task(task):
        messages.success(request, f"The task {task.tool} was cancelled.")
    else:
        messages.info(request, ENDED_MESSAGE)
    return redirect(reverse("runs:background_tasks"))
