"""The filters and orders of traces and of their scores, as the published client sends them. A run is a trace."""

from __future__ import annotations

from django.db.models import F, Q
from django.db.models.expressions import OrderBy as OrderByExpression

from agentcms.api.query_params import QueryParams
from agentcms.api.time_range import read_time_range
from agentcms.ids import parse_uuid
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject

TEXT_COLUMNS = {
    "entityId": "agent_key",
    "entityName": "agent_key",
    "threadId": "thread__key",
    "resourceId": "resource__key",
}
ID_COLUMNS = {"traceId": "pk", "runId": "pk", "experimentId": "experiment_id"}
NULLABLE_COLUMNS = {"finished_at", "score"}
NO_ROW = Q(pk__in=[])


def read_run_filters(query: QueryParams) -> Q:
    """Return the condition of the filters that traces and scores share. It is for runs."""
    condition = Q()
    for name, column in TEXT_COLUMNS.items():
        if (text := query.text(name)) is not None:
            condition &= Q(**{column: text})
    for name, column in ID_COLUMNS.items():
        if (text := query.text(name)) is not None:
            key = parse_uuid(text)
            condition &= NO_ROW if key is None else Q(**{column: key})
    # Only agents have runs. Earlier clients write the type in capitals.
    if (query.text("entityType") or "agent").lower() != "agent":
        condition &= NO_ROW
    return condition


def read_times(query: QueryParams, name: str, column: str) -> JSONObject:
    """Return the lookups of a column for a parameter with a range of times."""
    faults: list[tuple[str, str]] = []
    lookups = read_time_range(query.json_object(name), column, name, faults)
    for fault in faults:
        query.add_fault(*fault)
    return {**lookups}


def read_texts(query: QueryParams, name: str) -> list[str] | None:
    """Return a parameter that is a text or a JSON list of texts, or None where it is absent."""
    text = query.text(name)
    if text is None or not text.startswith("["):
        return None if text is None else [text]
    try:
        values = parse_strict_json(text.encode())
    except InvalidJSON:
        values = None
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        return [str(value) for value in values]
    query.add_fault(name, "Give a text, or a JSON list of texts.")
    return None


def read_order(query: QueryParams, columns: dict[str, str]) -> list[OrderByExpression]:
    """Return the order that `field` and `direction` name. The first of the columns is the default."""
    column = columns[query.choice("field", [*columns], next(iter(columns)))]
    is_descending = query.choice("direction", ("ASC", "DESC"), "DESC") == "DESC"
    # Databases differ in where they list nulls. Where a column has none, its index would not serve such an order.
    nulls_last = True if column in NULLABLE_COLUMNS else None
    first = OrderByExpression(F(column), descending=is_descending, nulls_last=nulls_last)
    return [first, OrderByExpression(F("pk"), descending=is_descending)]
