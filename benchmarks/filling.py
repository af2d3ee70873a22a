"""Many agents with a history each, copied from one beneath the application, through which it would take hours."""

from __future__ import annotations

from typing import Any

from django.db import connection, models, transaction

from agents_app.models import Agent, AgentIndex
from benchmarks import TEXT
from versions_app.models import Activation, AgentVersion

TEMPLATE = "copied-template"
NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})"

# What each database calls the same thing; n is the number of the agent, v that of the version.
POSTGRESQL = {
    "agent": "'agent-' || lpad(n::text, 6, '0')",
    "version": "lpad(to_hex(n::bigint * 1000 + v), 32, '0')::uuid",
    "time": "now() - n * interval '1 second'",
    "words": "replace(t.words, 'copied template', 'agent ' || lpad(n::text, 6, '0'))",
}
SQLITE = {
    "agent": "printf('agent-%06d', n)",
    "version": "printf('%032x', n * 1000 + v)",
    "time": "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || n || ' seconds')",
    "words": "replace(t.words, 'copied template', printf('agent %06d', n))",
}


def fill(agents: int, versions: int) -> None:
    """`agent-000000` and on, each with so many versions of the same words, the newest of them live."""
    words = POSTGRESQL if connection.vendor == "postgresql" else SQLITE
    newest = words["version"].replace("+ v", f"+ {versions}")
    Agent(id=TEMPLATE, name="Template", instructions=TEXT, model={"provider": "demo", "name": "echo"}).save()
    own = {"agent_id": words["agent"], "created_at": words["time"]}
    version = {**own, "id": words["version"], "version_number": "v", "based_on": "NULLIF(v - 1, 0)"}
    agent = {
        "id": words["agent"],
        "created_at": words["time"],
        "updated_at": words["time"],
        "last_version_number": str(versions),
        "active_version_id": newest,
        "head_version_id": newest,
    }
    moved = {**own, "to_version_id": newest, "to_version_number": str(versions)}
    with transaction.atomic():  # pointers are looked at when it ends
        copy(Agent, "id", agents, agent)
        copy(AgentVersion, "agent_id", agents, version, versions)
        copy(Activation, "agent_id", agents, moved)
        copy(AgentIndex, "agent_id", agents, {"agent_id": words["agent"], "words": words["words"]})
    Agent.objects.get(pk=TEMPLATE).delete()
    settle()


def settle() -> None:
    """What a database that grew over months did long ago would otherwise go on beside the load."""
    with connection.cursor() as cursor:
        for statement in ("VACUUM (ANALYZE)", "CHECKPOINT") if connection.vendor == "postgresql" else ("ANALYZE",):
            cursor.execute(statement)


def copy(model: type[models.Model], key: str, agents: int, columns: dict[str, str], versions: int = 1) -> None:
    """The template's row of a model, once for each agent and version, with some columns computed."""
    names = [field.column for field in model._meta.concrete_fields if field.column in columns or not is_number(field)]
    taken = ", ".join(columns.get(str(name), f't."{name}"') for name in names)
    numbers = NUMBERS.format(first=0, last=agents - 1)
    history = f"(WITH RECURSIVE h(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM h WHERE v < {versions}) SELECT v FROM h)"
    into = f'INSERT INTO "{model._meta.db_table}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in names)})'
    rows = f'SELECT {taken} FROM numbers CROSS JOIN {history} h CROSS JOIN "{model._meta.db_table}" t'
    with connection.cursor() as cursor:
        cursor.execute(f'{into} {numbers} {rows} WHERE t."{key}" = %s ORDER BY n, v', [TEMPLATE])


def is_number(field: Any) -> bool:
    """Whether the database numbers the rows itself."""
    return isinstance(field, models.AutoField | models.BigAutoField)
