"""Vectors in PostgreSQL with the extension pgvector, where an operator has enabled it: `manage.py use_pgvector`.

A table of packed vectors gets a column `halves`, which the database computes from the bytes. Django does not know the
column, because most installations have none. Similarity is the cosine, for which the scale of a vector is irrelevant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cachetools import TTLCache
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, FloatField, Func, IntegerField
from django.db.models.sql.compiler import SQLCompiler

from agentcms.cache import SizeLimitedCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FUNCTION = "agentcms_halves"
MIN_VERSION = (0, 8)  # with iterative scans, which let a filtered search find enough
SECONDS_UNTIL_NEXT_CHECK = 60.0

# The body is parsed now, so that it does not depend on the search path of a session that restores a backup.
# get_byte returns 0 to 255, and the packed numbers are signed: 128 to 255 stand for -128 to -1.
CREATE_FUNCTION = """
CREATE OR REPLACE FUNCTION agentcms_halves(data bytea) RETURNS halfvec LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT array_agg(get_byte(data, i) - 2 * (get_byte(data, i) & 128) ORDER BY i)::halfvec
    FROM generate_series(0, octet_length(data) - 1) AS i
)
"""

_enabled: SizeLimitedCache[str, bool] = SizeLimitedCache(TTLCache(1, SECONDS_UNTIL_NEXT_CHECK))


class PgvectorUnavailable(Exception):
    """A database that has no pgvector. The message says what to install."""


def uses_pgvector() -> bool:
    """Return whether an operator has enabled pgvector. A change applies within a minute."""
    return connection.vendor == "postgresql" and _enabled.get_or_create("", _has_function)


def _has_function() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regproc(%s) IS NOT NULL", [FUNCTION])
        return bool(cursor.fetchone()[0])


def enable(tables: Sequence[str]) -> None:
    """Create the extension and the columns, in one transaction of the caller. Raise PgvectorUnavailable."""
    if connection.vendor != "postgresql":
        raise PgvectorUnavailable("pgvector is an extension of PostgreSQL, and this database is another one.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
        row = cursor.fetchone()
        if row is None or tuple(map(int, row[0].split(".")[:2])) < MIN_VERSION:
            message = "The server of the database has no pgvector 0.8 or newer. Install it there, then try again."
            raise PgvectorUnavailable(message)
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        cursor.execute(CREATE_FUNCTION)
        for table in tables:
            column = f"halves halfvec GENERATED ALWAYS AS ({FUNCTION}(data)) STORED"
            cursor.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}")
            # In the row if possible: a search reads nothing else of it.
            cursor.execute(f"ALTER TABLE {table} ALTER COLUMN halves SET STORAGE MAIN")
    forget_cached_state()


def disable() -> None:
    """Remove what `enable` created, except the extension. The vectors themselves stay."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP FUNCTION IF EXISTS {FUNCTION} CASCADE")
    forget_cached_state()


def forget_cached_state() -> None:
    """Let this process check again whether pgvector is enabled."""
    _enabled.clear()


def vector_literal(row: NDArray[np.float32]) -> str:
    """Return a vector as pgvector reads it."""
    # Six digits are more than the 11 bits of a halfvec keep.
    return f"[{','.join(format(number, '.6g') for number in row.tolist())}]"


class CosineDistance(Func):
    """The distance of the column `halves` from the nearest of some vectors: 1 minus the similarity."""

    output_field = FloatField()
    arity = 1

    def __init__(self, queries: NDArray[np.float32], dimensions: int | None = None) -> None:
        """Compare with vectors as rows. With `dimensions`, an approximate index for that length is usable."""
        # Django does not know the column. Another one of the model ties the expression to the table of the query.
        super().__init__(F("pk"))
        self.literals = [vector_literal(row) for row in queries]
        self.cast = f"halfvec({dimensions})" if dimensions else "halfvec"

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> object:
        """Return one distance, or the least of several."""
        alias = compiler.query.get_initial_alias()
        column = f"{connection.ops.quote_name(alias)}.halves::{self.cast}"
        distances = [f"({column} <=> %s::{self.cast})" for _ in self.literals]
        sql = f"LEAST({', '.join(distances)})" if len(distances) > 1 else distances[0]
        return sql, self.literals


class ByteLength(Func):
    """The length of packed vectors in numbers. Those of another length cannot be compared."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()


def similarity_of_distance(distance: float) -> float:
    """Return the similarity of a cosine distance, which is NaN for vectors of zeros."""
    return 0.0 if distance != distance else 1 - distance
