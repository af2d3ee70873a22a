"""The sections of a request to a judge: what others wrote is escaped in them."""

from __future__ import annotations

import json
import re

from agentcms.wire.json_types import JSONValue

MAX_SECTION_LENGTH = 100_000  # characters of one section
# End tags, blanks and upper case as well: a model takes such tags for those of the sections.
SECTIONS = re.compile(r"<(?=[\s/]*(?:Input|Output|ExpectedOutput|Results|Rubric)\b)", re.IGNORECASE)


def escape_sections(value: JSONValue) -> str:
    """Return a text in which the tags of the sections of a judge's request are escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return SECTIONS.sub("&lt;", text[:MAX_SECTION_LENGTH])
