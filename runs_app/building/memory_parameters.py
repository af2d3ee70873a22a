"""The parameters of the function of a registered memory."""

from __future__ import annotations

import inspect
from typing import Any

from agents_app.configuration.references import FIELD_KINDS, find_entry
from agents_app.registry import Entry

CONTEXT_PARAMETER = "context"  # the request context of the run, with facts about the caller
OPTIONS_PARAMETER = "options"  # those of the call, which narrow the memory


def memory_parameters(entry: Entry) -> tuple[str, ...]:
    """Return the parameters of the function that have the values of a run."""
    if entry.target is None:
        return ()
    names = inspect.signature(entry.target).parameters
    return tuple(name for name in (CONTEXT_PARAMETER, OPTIONS_PARAMETER) if name in names)


def memory_takes_context(memory: Any) -> bool:
    """Return whether the memory of a configuration is registered, and its function has the request context."""
    entry = find_entry(FIELD_KINDS["memory"], memory) if isinstance(memory, str) and memory else None
    return entry is not None and CONTEXT_PARAMETER in memory_parameters(entry)
