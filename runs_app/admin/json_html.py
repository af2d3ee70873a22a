"""Values as JSON in HTML."""

from __future__ import annotations

import json

from django.utils.html import format_html


def json_html(value: object) -> str:
    """Return a value as JSON in HTML, or a dash for none."""
    return "–" if value is None else format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False))
