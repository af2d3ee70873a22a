"""The rows of items in tables, on pages and in the admin."""

from __future__ import annotations

from typing import Any

from agentcms.web.template_context import TemplateContext
from evals_app.datasets.values import text_of_json
from evals_app.models import ItemVersion


def item_row(item: ItemVersion) -> TemplateContext:
    """Return the values that the table of items displays."""
    return {
        "item": item,
        "input": text_of_json(item.input),
        "ground_truth": text_of_json(item.ground_truth),
        "source": (item.source or {}).get("type", ""),
        "extras": [label for label, value in extras_of(item) if value],
    }


def extras_of(item: ItemVersion) -> list[tuple[str, Any]]:
    return [
        ("tool mocks", item.tool_mocks),
        ("expected steps", item.expected_trajectory),
        ("request context", item.request_context),
        ("own scorers", item.scorer_keys is not None),
        ("metadata", item.metadata),
    ]
