"""The request context of a call: the values with which a caller fills the variables of an agent.

`requestContext` and its shorthand `variables` are members of the body. The published client may also send a
`requestContext` in the query, as JSON in Base64.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Sequence
from typing import NamedTuple

from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.names import join_path, printable_key
from agentcms.wire.unknown_names import MAX_UNKNOWN_NAMES, UnknownName
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE, find_json_faults
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.configuration.variables import is_reserved

MEMBERS = ("requestContext", "variables")  # of a body; the later one wins
MAX_CONTEXT_KB = 64  # of each member, as JSON in UTF-8
MAX_QUERY_KB = 8  # of the parameter in the query

URL_SAFE = str.maketrans("-_ ", "+/+")  # to the plain alphabet; a plus sign in a query is a space

MALFORMED_MESSAGE = "The query parameter requestContext is not a JSON object in Base64, so it was ignored."
RESERVED_MESSAGE = "This name is reserved for the server, so its value was dropped. Choose another name."

RequestContext = JSONObject


class ParsedContext(NamedTuple):
    """The request context of a call, and warnings about the parts of it that are not used."""

    values: RequestContext
    warnings: list[UnknownName]


def parse_request_context(
    body: JSONMapping, query_values: Sequence[str] = (), *, strict: bool = False
) -> ParsedContext:
    """Return the request context of a call, without reserved keys.

    A malformed value in the query is ignored, with a warning. Raise ConfigError for a malformed one in the body and
    for one that is too large, and for each warning if the request is strict.
    """
    issues: list[Issue] = []
    warnings: list[UnknownName] = []
    parts = [_parse_query_value(query_values, issues, warnings)]
    parts += [_parse_member(name, body[name], issues) for name in MEMBERS if body.get(name) is not None]
    values = {key: value for part in parts for key, value in part.items()}
    warnings += reserved_warnings([key for key in values if is_reserved(key)])
    if strict:
        issues += [Issue(warning.field, warning.message) for warning in warnings]
    if issues:
        raise ConfigError(issues)
    return ParsedContext({key: value for key, value in values.items() if not is_reserved(key)}, warnings)


def reserved_warnings(keys: Sequence[str]) -> list[UnknownName]:
    """Return a warning for each of these reserved keys, up to a limit."""
    warnings = [
        UnknownName(join_path("requestContext", key), printable_key(key), RESERVED_MESSAGE)
        for key in keys[:MAX_UNKNOWN_NAMES]
    ]
    if more := len(keys) - len(warnings):
        warnings.append(UnknownName("requestContext", "", f"{more} more names are reserved."))
    return warnings


def _parse_member(name: str, value: object, issues: list[Issue]) -> RequestContext:
    if not isinstance(value, dict):
        issues.append(Issue(name, NOT_AN_OBJECT_MESSAGE))
        return {}
    if faults := [Issue(*fault) for fault in find_json_faults(value, name)]:
        issues += faults
        return {}
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_CONTEXT_KB * 1024:
        issues.append(Issue(name, f"This must not exceed {MAX_CONTEXT_KB} KB. Send shorter values."))
    return value


def _parse_query_value(texts: Sequence[str], issues: list[Issue], warnings: list[UnknownName]) -> RequestContext:
    """Return the object in the last of these texts, or an empty one."""
    text = texts[-1] if texts else ""
    if len(text) > MAX_QUERY_KB * 1024:
        message = f"The query parameter must not exceed {MAX_QUERY_KB} KB. Send the values in the body."
        issues.append(Issue("requestContext", message))
        return {}
    if not text:
        return {}
    try:
        value = parse_strict_json(b64decode(text.translate(URL_SAFE), validate=True))
    except (binascii.Error, ValueError, InvalidJSON):
        value = None
    if isinstance(value, dict):
        return value
    warnings.append(UnknownName("requestContext", "requestContext", MALFORMED_MESSAGE))
    return {}
