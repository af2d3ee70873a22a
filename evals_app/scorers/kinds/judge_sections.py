"""The sections of a request to a judge, and its model."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agentcms.wire.json_types import JSONObject, JSONValue
from evals_app.scorers.results import ScorerError
from runs_app.exceptions import AgentBuildError

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MAX_SECTION_LENGTH = 100_000  # characters of one section
# End tags, blanks and upper case as well: a model takes such tags for those of the sections.
SECTIONS = re.compile(r"<(?=[\s/]*(?:Input|Output|ExpectedOutput|Results|Rubric)\b)", re.IGNORECASE)


def escape_sections(value: JSONValue) -> str:
    """Return a text in which the tags of the sections of a judge's request are escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return SECTIONS.sub("&lt;", text[:MAX_SECTION_LENGTH])


def build_judge_model(config: JSONObject) -> Model:
    """Return the model of a judge. Raise ScorerError if it is not available."""
    from runs_app.providers.models import build_model  # heavy

    try:
        return build_model(config.get("model") or {})
    except AgentBuildError as error:
        raise ScorerError(" ".join(error.messages)) from None
