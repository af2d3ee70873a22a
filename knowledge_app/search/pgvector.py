"""The vectors of chunks in pgvector, where an administrator of the database enabled it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachetools import TTLCache
from django.db import connection
from django.db.models.expressions import RawSQL

from agentcms.cache import SizeLimitedCache
from knowledge_app.models import KnowledgeIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

ENABLED_CACHE_SECONDS = 10.0  # for which a process remembers whether it is enabled
COLUMN = "embedding"

_enabled: SizeLimitedCache[str, bool] = SizeLimitedCache(TTLCache(1, ENABLED_CACHE_SECONDS))


def is_enabled() -> bool:
    """Return whether the table of chunks has a column of pgvector."""
    return connection.vendor == "postgresql" and _enabled.get_or_create("chunk", has_column)


def has_column() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = ANY (current_schemas(false))"
            " AND table_name = %s AND column_name = %s)",
            ["knowledge_app_chunk", COLUMN],
        )
        return bool(cursor.fetchone()[0])


def nearest(rows: Any, index: KnowledgeIndex, vector: Vector, top_k: int) -> list[tuple[int, float]]:
    """Return the nearest of some chunks with their similarity."""
    text = vector_text(vector)
    sql = f"embedding::halfvec({len(vector)}) <#> %s::halfvec({len(vector)})"
    distance = RawSQL(sql, [text])  # noqa: S611  the vector is a parameter
    nearest_rows = rows.order_by(distance, "pk").annotate(distance=distance).values_list("pk", "distance")[:top_k]
    return [(pk, -distance) for pk, distance in nearest_rows]


def vector_text(vector: Vector) -> str:
    return "[" + ",".join(f"{number:.6g}" for number in vector.tolist()) + "]"
