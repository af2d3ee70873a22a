"""Copies of a run, inserted by one statement. `benchmarks.usage` calls this in the application of its copy."""

from __future__ import annotations

from django.db import connection

from runs_app.models import AgentRun

TABLE = AgentRun._meta.db_table
DAYS = 90
VERSIONS = 9

# Run n of count ended n * DAYS / count days ago, after 1 to 40 seconds. Its version is 9 at first and 1 at last.
SQLITE = {
    "numbers": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})",
    "id": "lower(hex(randomblob(16)))",
    "start": "datetime('now', '-' || (n.i * {days}.0 / {count}) || ' days', '-41 seconds')",
    "end": "datetime('now', '-' || (n.i * {days}.0 / {count}) || ' days', '-' || (n.i % 40) || ' seconds')",
}
POSTGRESQL = {
    "numbers": "WITH n AS (SELECT generate_series(1, {count}) AS i)",
    "id": "gen_random_uuid()",
    "start": "now() - make_interval(secs => n.i * {days}.0 * 86400 / {count} + 41)",
    "end": "now() - make_interval(secs => n.i * {days}.0 * 86400 / {count} + n.i % 40)",
}


def copy_run(count: int) -> None:
    """Insert copies of the only run of the database, over 90 days and nine versions. 4 % of them failed."""
    dialect = POSTGRESQL if connection.vendor == "postgresql" else SQLITE
    sql = {name: text.format(count=count, days=DAYS) for name, text in dialect.items()}
    values = {
        "id": sql["id"],
        "created_at": sql["start"],
        "started_at": sql["start"],
        "finished_at": sql["end"],
        "version_number": f"{VERSIONS} - n.i * {VERSIONS} / ({count} + 1)",
        "status": "CASE WHEN n.i % 25 = 0 THEN 'failed' ELSE 'succeeded' END",
        "cost": "0.0004",
    }
    columns = [str(field.column) for field in AgentRun._meta.concrete_fields]
    names = ", ".join(columns)
    selected = ", ".join(values.get(column, f"r.{column}") for column in columns)
    source = f"SELECT {selected} FROM n, (SELECT * FROM {TABLE} LIMIT 1) r"
    with connection.cursor() as cursor:
        cursor.execute(f"{sql['numbers']} INSERT INTO {TABLE} ({names}) {source}")
        cursor.execute("ANALYZE")
