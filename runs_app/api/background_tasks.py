"""API views of background tasks."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F
from django.db.models.expressions import OrderBy
from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.request import Request

from access_app.permissions import can_have_role
from access_app.role import Role, RoleRequired
from agentcms.api.pagination import page_payload
from agentcms.api.parsers import json_object_body
from agentcms.api.query_params import QueryParams
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import NotFound
from agentcms.ids import parse_uuid
from agentcms.wire.json_types import JSONObject
from agents_app.api.strict_requests import warning_payloads
from runs_app.api.stream_responses import EventStreamNegotiation, stream_head_response, stream_of_blocks
from runs_app.background.child_waits import suspend_payloads
from runs_app.background.endings import cancel_task
from runs_app.background.task_streams import TaskStream
from runs_app.events.streams import StreamSlot
from runs_app.models import BackgroundTask
from runs_app.models.background_task import BackgroundTaskQuerySet

DATES = {
    "createdAt": "created_at",
    "startedAt": "started_at",
    "suspendedAt": "suspended_at",
    "completedAt": "finished_at",
}
TEXT_FILTERS = {
    "agentId": "agent_key",
    "threadId": "thread__key",
    "resourceId": "run__resource__key",
    "toolName": "tool",
    "toolCallId": "call_id",
}
ID_FILTERS = {"runId": "run", "taskId": "pk"}
NO_STATUS = "all"


class BackgroundTasksView(JSONView):
    """List of the background tasks of runs that the user may read."""

    def get(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            paging = query.paging(50)
            filters = read_filters(query, "runId")
            status = query.choice("status", (NO_STATUS, *BackgroundTask.Status.values), NO_STATUS)
            column = DATES[query.choice("dateFilterBy", tuple(DATES), "createdAt")]
            since, until = query.timestamp("fromDate"), query.timestamp("toDate")
            order = DATES[query.choice("orderBy", tuple(DATES), "createdAt")]
            direction = query.choice("orderDirection", ("asc", "desc"), "desc")
            unknown = query.check_unknown_names()
        filters |= {"status": status} if status != NO_STATUS else {}
        filters |= {f"{column}__gte": since} if since else {}
        filters |= {f"{column}__lt": until} if until else {}
        tasks = BackgroundTask.objects.for_user(request.user).filter(**filters)
        page = tasks.select_related("thread", "run__resource").order_by(*ordering(order, direction), "pk")
        rows = [*page[paging.start : paging.stop]]
        waits_for = suspend_payloads(rows)
        bodies = [task_body(task, waits_for.get(task.pk)) for task in rows]
        body = page_payload("tasks", bodies, tasks.count(), paging.page, paging.per_page)
        return json_response(body | warning_payloads(unknown))


class BackgroundTaskView(JSONView):
    """One background task."""

    def get(self, request: Request, task_id: str) -> HttpResponse:
        task = get_readable_task(request, task_id)
        return json_response(task_body(task, suspend_payloads([task]).get(task.pk)))


class CancelTaskView(JSONView):
    """Cancellation of a background task. A finished one stays unchanged."""

    def post(self, request: Request, task_id: str) -> HttpResponse:
        json_object_body(request)
        task = get_readable_task(request, task_id)
        if not can_have_role(request.user, Role.EDITOR):  # the role of the API key
            raise RoleRequired(Role.EDITOR, task.owner_id)
        cancel_task(task)
        return json_response(task_body(get_readable_task(request, task_id)))


class TaskStreamView(JSONView):
    """Stream of the changes of background tasks, first of those that run."""

    content_negotiation_class = EventStreamNegotiation

    def get(self, request: Request) -> StreamingHttpResponse:
        with QueryParams(request) as query:
            filters = read_filters(query, "runId", "taskId")
            query.check_unknown_names()

        def tasks() -> BackgroundTaskQuerySet:
            return BackgroundTask.objects.for_user(request.user).filter(**filters)

        return stream_of_blocks(TaskStream(tasks, request.user, StreamSlot(request.user)))

    def head(self, request: Request) -> HttpResponse:
        with QueryParams(request) as query:
            read_filters(query, "runId", "taskId")
            query.check_unknown_names()
        return stream_head_response()


def ordering(column: str, direction: str) -> list[OrderBy]:
    """Return the order of a list. Tasks without the time come last: PostgreSQL and SQLite have other defaults."""
    is_descending = direction == "desc"
    return [OrderBy(F(name), descending=is_descending, nulls_last=True) for name in (column, "number")]


def read_filters(query: QueryParams, *ids: str) -> dict[str, object]:
    """Return the filters of a query for a queryset of tasks."""
    filters: dict[str, object] = {
        column: text for name, column in TEXT_FILTERS.items() if (text := query.text(name)) is not None
    }
    for name in ids:
        if (text := query.text(name)) is not None:
            filters[ID_FILTERS[name]] = parse_uuid(text) or UUID(int=0)  # which no run and no task has
    return filters


def get_readable_task(request: Request, task_id: str) -> BackgroundTask:
    """Return a task that the user may read. Raise NotFound for any other."""
    uuid = parse_uuid(task_id)
    tasks = BackgroundTask.objects.for_user(request.user).select_related("thread", "run__resource")
    task = tasks.filter(pk=uuid).first() if uuid else None
    if task is None:
        raise NotFound(f"Background task with id {task_id} not found")
    return task


def task_body(task: BackgroundTask, waits_for: JSONObject | None = None) -> JSONObject:
    """Return a task under the names of the published client. `waits_for` is what people decide before it goes on."""
    return {
        "id": task.pk,
        "status": task.status,
        "toolName": task.tool,
        "toolCallId": task.call_id,
        "args": task.arguments,
        "agentId": task.agent_key,
        "runId": task.run_id,
        "disposition": "awaited" if task.is_awaited else "deferred",
        "createdAt": task.created_at,
        "retryCount": task.retries,
        "maxRetries": task.max_retries,
        "timeoutMs": task.timeout_ms,
        **optional_members(task),
        **({"suspendPayload": waits_for} if waits_for else {}),
    }


def optional_members(task: BackgroundTask) -> JSONObject:
    """Return the members of a task that may be missing, without those that are not there yet."""
    resource = task.run.resource
    members = {
        "threadId": task.thread.key if task.thread else None,
        "resourceId": resource.key if resource else None,
        "result": task.result,
        "error": {"message": task.error} if task.error else None,
        "startedAt": task.started_at,
        "suspendedAt": task.suspended_at,
        "completedAt": task.finished_at,
        "progress": task.progress,
    }
    return {name: value for name, value in members.items() if value is not None}
