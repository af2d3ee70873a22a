"""The working memory that a client sets when it creates a thread."""

from __future__ import annotations

from agents_app.configuration.memory.options import WorkingMemoryOptions
from agents_app.configuration.schema import ConfigError, Issue
from memory_app.models import Thread
from memory_app.working import values
from memory_app.working.options import working_options_of

METADATA_NAME = "workingMemory"
METADATA_PATH = f"metadata.{METADATA_NAME}"


def write_initial_memory(thread: Thread) -> None:
    """Write the working memory in the metadata of a new thread, if any. Raise ConfigError if it is invalid."""
    value = (thread.metadata or {}).get(METADATA_NAME)
    if value is None:
        return
    text = value if isinstance(value, str) else values.encode(value)
    options = working_options_of(thread.agent) or WorkingMemoryOptions()
    holder = thread if options.scope == "thread" or thread.resource is None else thread.resource
    outcome = values.write_text(holder, text, options, values.Origin(user_id=thread.user_id))
    if outcome.issues:
        raise ConfigError([Issue(METADATA_PATH, issue.message) for issue in outcome.issues])
