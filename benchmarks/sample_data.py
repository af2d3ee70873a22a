"""Sample agents with histories, inserted by SQL. Creating a million versions through the application takes hours."""

from __future__ import annotations

from typing import Any

from django.db import connection, models, transaction

from agents_app.models import Agent, AgentIndex
from benchmarks import TEXT
from versions_app.models import Activation, AgentVersion

TEMPLATE = "copied-template"
NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})"

# SQL expressions for each database; n is the number of the agent, v that of the version.
POSTGRESQL_EXPRESSIONS = {
    "agent": "'agent-' || lpad(n::text, 6, '0')",
    "version": "lpad(to_hex(n::bigint * 1000 + v), 32, '0')::uuid",
    "time": "now() - n * interval '1 second'",
    "words": "replace(t.words, 'copied template', 'agent ' || lpad(n::text, 6, '0'))",
}
SQLITE_EXPRESSIONS = {
    "agent": "printf('agent-%06d', n)",
    "version": "printf('%032x', n * 1000 + v)",
    "time": "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || n || ' seconds')",
    "words": "replace(t.words, 'copied template', printf('agent %06d', n))",
}


def fill(agents: int, versions: int) -> None:
    """Insert the agents `agent-000000` and so on, with equal versions each. The newest version is live."""
    expressions = POSTGRESQL_EXPRESSIONS if connection.vendor == "postgresql" else SQLITE_EXPRESSIONS
    newest = expressions["version"].replace("+ v", f"+ {versions}")
    Agent(id=TEMPLATE, name="Template", instructions=TEXT, model={"provider": "demo", "name": "echo"}).save()
    common = {"agent_id": expressions["agent"], "created_at": expressions["time"]}
    version = {**common, "id": expressions["version"], "version_number": "v", "based_on": "NULLIF(v - 1, 0)"}
    agent = {
        "id": expressions["agent"],
        "created_at": expressions["time"],
        "updated_at": expressions["time"],
        "last_version_number": str(versions),
        "active_version_id": newest,
        "head_version_id": newest,
    }
    activation = {**common, "to_version_id": newest, "to_version_number": str(versions)}
    with transaction.atomic():  # the foreign keys to versions are checked at its end
        copy_template(Agent, "id", agents, agent)
        copy_template(AgentVersion, "agent_id", agents, version, versions)
        copy_template(Activation, "agent_id", agents, activation)
        index = {"agent_id": expressions["agent"], "words": expressions["words"]}
        copy_template(AgentIndex, "agent_id", agents, index)
    Agent.objects.get(pk=TEMPLATE).delete()
    run_maintenance()


def run_maintenance() -> None:
    """Run the maintenance of the database now. Otherwise it would start by itself during the measurements."""
    with connection.cursor() as cursor:
        for statement in ("VACUUM (ANALYZE)", "CHECKPOINT") if connection.vendor == "postgresql" else ("ANALYZE",):
            cursor.execute(statement)


def copy_template(
    model: type[models.Model], key: str, agents: int, columns: dict[str, str], versions: int = 1
) -> None:
    """Insert the row of the template once for each agent and version.

    `key` is the column with the id of the agent, `columns` the SQL expressions of the columns that differ.
    """
    fields = model._meta.concrete_fields
    names = [field.column for field in fields if field.column in columns or not is_auto_field(field)]
    values = ", ".join(columns.get(str(name), f't."{name}"') for name in names)
    numbers = NUMBERS.format(first=0, last=agents - 1)
    history = f"(WITH RECURSIVE h(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM h WHERE v < {versions}) SELECT v FROM h)"
    into = f'INSERT INTO "{model._meta.db_table}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in names)})'
    rows = f'SELECT {values} FROM numbers CROSS JOIN {history} h CROSS JOIN "{model._meta.db_table}" t'
    with connection.cursor() as cursor:
        cursor.execute(f'{into} {numbers} {rows} WHERE t."{key}" = %s ORDER BY n, v', [TEMPLATE])


def is_auto_field(field: Any) -> bool:
    """Return whether the database generates the values of a column."""
    return isinstance(field, models.AutoField | models.BigAutoField)
