"""Runs that wait for people, copied from one that was suspended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs_app.models import AgentRun

AGENT = "refunds"
TEAM = "shop"
OWNERS = 20  # users who share the waiting runs
COPIED_AT_ONCE = 500


def collect_static_files() -> None:
    """Collect the files of the pages, whose names have hashes."""
    from django.core.management import call_command

    call_command("collectstatic", interactive=False, verbosity=0)


def create_agent() -> None:
    """Create an agent that writes a few words and then calls a tool that needs approval."""
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    from agents_app.models import Agent
    from agents_app.registry import Entry, Kind, registry, tool

    async def answer(messages: Any, info: Any) -> Any:
        if any(isinstance(message, ModelResponse) for message in messages):
            yield "The refund is on its way."
            return
        yield "Let me refund this."
        yield {1: DeltaToolCall("refund", '{"order": "A-17", "amount": 80}', tool_call_id="c0")}

    @tool("refund", requires_approval=True)
    def refund(order: str, amount: float) -> str:
        return f"{amount:g} refunded"

    model = FunctionModel(stream_function=answer, model_name="scripted")
    registry.add(Entry(Kind.MODEL_PROVIDER, "scripted", "Scripted", target=lambda name, choice: model))
    choice = {"provider": "scripted", "name": "scripted"}
    Agent(id=AGENT, name="Refunds", owner_id=TEAM, instructions="", model=choice, tools=["refund"]).save()


def create_users() -> None:
    """Create users who own the runs, a publisher who may decide all calls, and a member of another team."""
    from django.contrib.auth import get_user_model

    from access_app.models import Membership
    from access_app.role import Role

    roles = [*((f"user{n}", Role.EDITOR, TEAM) for n in range(OWNERS)), ("publisher", Role.PUBLISHER, TEAM)]
    for name, role, owner in [*roles, ("stranger", Role.PUBLISHER, "other")]:
        user = get_user_model().objects.create_user(name)
        Membership.objects.create(user=user, owner_id=owner, role=role)


def suspend_first_run() -> AgentRun:
    """Execute a run until it waits."""
    from django.contrib.auth import get_user_model

    from runs_app.engine.start.run import start_run
    from runs_app.events.streams import wait_until_over
    from runs_app.resolution import stored_agents

    user = get_user_model().objects.get(username="user0")
    run = wait_until_over(start_run(stored_agents.get(AGENT), user=user, messages="Refund order A-17.").pk)
    assert run.status == "suspended", run.error
    return run


def fill_database(count: int) -> None:
    """Fill the database of the environment in a process of its own, so that the measured one does not grow."""
    import django

    django.setup()
    fill(count)


def fill(count: int) -> None:
    """Copy the only run so often, with its events, steps and waiting call, and give the copies to all users."""

    from runs_app.models import AgentRun

    template = AgentRun.objects.get()
    for start in range(0, count, COPIED_AT_ONCE):
        copy_run(template, range(start, min(start + COPIED_AT_ONCE, count)))
    vacuum()


def vacuum() -> None:
    """Give the space of deleted rows back, and count the rows for the planner."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        cursor.execute("ANALYZE")


def copy_run(template: AgentRun, numbers: Iterable[int]) -> None:
    from django.contrib.auth import get_user_model
    from django.db import transaction

    from agentcms.ids import uuid7
    from runs_app.models import PendingCall, RunEvent, RunStep

    users = [*get_user_model().objects.filter(username__startswith="user")]
    owned = {uuid7(): users[number % OWNERS] for number in numbers}
    runs = [copied(template, pk=pk, root_id=pk, requested_by_id=user.pk) for pk, user in owned.items()]
    events, steps = [*template.events.all()], [*template.steps.all()]
    call = PendingCall.objects.get(run=template)
    with transaction.atomic():
        type(template).objects.bulk_create(runs)
        RunEvent.objects.bulk_create([copied(event, run_id=pk) for pk in owned for event in events])
        RunStep.objects.bulk_create([copied(step, run_id=pk) for pk in owned for step in steps])
        PendingCall.objects.bulk_create(
            [copied(call, pk=uuid7(), run_id=pk, root_id=pk, requested_by_id=user.pk) for pk, user in owned.items()]
        )


def copied(row: Any, **changes: Any) -> Any:
    """Return an unsaved copy of a row with other values."""
    values = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if not field.primary_key
    }
    return type(row)(**(values | changes))


def stored_bytes() -> int:
    """Return the size of the database, or of the tables of runs with their indexes."""
    from django.db import connection

    from runs_app.models import AgentRun, PendingCall, RunEvent, RunStep

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return int(cursor.fetchone()[0])
        tables = [model._meta.db_table for model in (AgentRun, PendingCall, RunEvent, RunStep)]
        # A partitioned table is empty itself.
        cursor.execute(
            "SELECT SUM(pg_total_relation_size(oid)) FROM pg_class LEFT JOIN pg_inherits ON inhrelid = oid"
            " WHERE ARRAY[relname::text, inhparent::regclass::text] && %s::text[]",
            [tables],
        )
        return int(cursor.fetchone()[0])
