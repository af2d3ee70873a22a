# ruff: noqa: S608  no input in these statements
"""Database objects of the search that migrations do not create: full-text indexes, triggers and an SQL function."""

from __future__ import annotations

from typing import Any

from django.db import connection, connections

from agents_app.models.search_index import FTS_TABLE, INDEX_TABLE, POSTGRESQL_TSVECTOR, json_contains

POSTGRESQL_INDEXES = (
    f"CREATE INDEX IF NOT EXISTS agent_index_words ON {INDEX_TABLE} USING gin (({POSTGRESQL_TSVECTOR}))",
    f"CREATE INDEX IF NOT EXISTS agent_index_metadata ON {INDEX_TABLE} USING gin (metadata jsonb_path_ops)",
    f"CREATE INDEX IF NOT EXISTS agent_index_agents ON {INDEX_TABLE} USING gin (agents jsonb_path_ops)",
)

SQLITE_REBUILD = f"INSERT INTO {FTS_TABLE}({FTS_TABLE}) VALUES ('rebuild')"
# The text is already tokenized, so this tokenizer only splits at spaces.
SQLITE_TABLE = (
    f"""CREATE VIRTUAL TABLE {FTS_TABLE} USING fts5(words, content='{INDEX_TABLE}', content_rowid='id',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co'")""",
    SQLITE_REBUILD,
)
# An FTS5 table with external content can only remove a row whose old text it is given:
# https://sqlite.org/fts5.html#external_content_tables
_DELETE_WORDS = f"INSERT INTO {FTS_TABLE}({FTS_TABLE}, rowid, words) VALUES ('delete', old.id, old.words);"
_INSERT_WORDS = f"INSERT INTO {FTS_TABLE}(rowid, words) VALUES (new.id, new.words);"
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER IF NOT EXISTS {FTS_TABLE}_in AFTER INSERT ON {INDEX_TABLE} BEGIN {_INSERT_WORDS} END",
    f"CREATE TRIGGER IF NOT EXISTS {FTS_TABLE}_out AFTER DELETE ON {INDEX_TABLE} BEGIN {_DELETE_WORDS} END",
    f"CREATE TRIGGER IF NOT EXISTS {FTS_TABLE}_change AFTER UPDATE OF words ON {INDEX_TABLE}"
    f" BEGIN {_DELETE_WORDS} {_INSERT_WORDS} END",
)


def install_search_index(using: str, **kwargs: object) -> None:
    """Create missing objects after every migration. SQLite loses the triggers of a table that it rebuilds."""
    connection = connections[using]
    tables = connection.introspection.table_names()
    if INDEX_TABLE not in tables:  # migrated back to a state before the index
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statements: tuple[str, ...] = POSTGRESQL_INDEXES
        else:
            statements = (() if FTS_TABLE in tables else SQLITE_TABLE) + SQLITE_TRIGGERS
        for statement in statements:
            cursor.execute(statement)


def is_search_index_installed() -> bool:
    """Return whether the triggers exist that update the full-text index on SQLite."""
    if connection.vendor == "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [INDEX_TABLE])
        return bool(cursor.fetchone()[0] >= len(SQLITE_TRIGGERS))


def reinstall_search_index() -> None:
    """Create missing objects and rebuild the full-text index, which may have missed writes."""
    install_search_index("default")
    with connection.cursor() as cursor:
        cursor.execute(SQLITE_REBUILD)


def add_sqlite_functions(connection: Any, **kwargs: Any) -> None:
    """Register the SQL function that matches metadata on a new SQLite connection."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("json_holds", 2, json_contains, deterministic=True)
