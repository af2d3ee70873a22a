"""Mocks of tools in runs of experiments: which calls they answer, and the errors of calls that none answers."""

from __future__ import annotations

import re
from typing import NamedTuple

from agentcms.wire.canonical import json_equal
from agentcms.wire.json_types import JSONMapping
from runs_app.building.tool_names import TOOL_PREFIXES, tool_name

NO_PERSON_MESSAGE = "In an experiment, no person can be asked."
EXHAUSTED, MISMATCH, NOT_DECLARED = "TOOL_MOCK_EXHAUSTED", "TOOL_MOCK_MISMATCH", "TOOL_MOCK_NOT_DECLARED"
OUTSIDE = "outside"  # not declared for a tool that works outside of the run
MOCK_MESSAGES = {
    EXHAUSTED: "The mocks of the tool '{name}' are used up. Add one for each call.",
    MISMATCH: "No mock of the tool '{name}' has the arguments of the call. Add one, or let it ignore the arguments.",
    NOT_DECLARED: "The tool '{name}' has no mock. Add one, or allow calls without a mock.",
    OUTSIDE: "The tool '{name}' works outside of the run, so experiments do not call it. Add a mock.",
}
PATTERNS = {
    code: re.compile(re.escape(text).replace(re.escape("{name}"), "([^']*)")) for code, text in MOCK_MESSAGES.items()
}


class MockFailure(NamedTuple):
    """A call that no mock answers, and that must not call its tool."""

    code: str
    tool: str


def mock_matches(mock: JSONMapping, arguments: JSONMapping) -> bool:
    """Return whether a mock is for a call with these arguments."""
    return mock.get("matchArgs") == "ignore" or json_equal(mock["args"], arguments)


def names_of_mock(mock: JSONMapping) -> set[str]:
    """Return the names of tools, as models see them, that a mock may mean: it may have a key instead."""
    key = str(mock["toolName"])
    return {key, *(tool_name(f"{prefix}{key}") for prefix in TOOL_PREFIXES.values())}


def missing_mock_message(name: str, *, has_mocks: bool, has_matches: bool, is_outside: bool) -> str:
    """Return the error of a call that no mock answers, from which `find_failure` returns its code."""
    code = EXHAUSTED if has_matches else MISMATCH if has_mocks else OUTSIDE if is_outside else NOT_DECLARED
    return MOCK_MESSAGES[code].format(name=name)


def find_failure(message: str) -> MockFailure | None:
    """Return the failure that the error of a run reports, or None for other errors."""
    for code, pattern in PATTERNS.items():
        if match := pattern.fullmatch(message):
            return MockFailure(NOT_DECLARED if code == OUTSIDE else code, match[1])
    return None
