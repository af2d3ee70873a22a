"""The limits of observational memory, from the options of an agent."""

from __future__ import annotations

from dataclasses import dataclass

from agents_app.configuration.memory.options import ObservationalOptions, parse_memory_options
from agents_app.models import Agent
from memory_app.history.token_estimate import BYTES_PER_TOKEN, count_tokens

THREAD_REQUIRED = "thread_required"
THREAD_REQUIRED_MESSAGE = (
    "ObservationalMemory (scope: 'thread') requires a threadId, but none was found in RequestContext or MessageList."
)
CHUNK_SHARE = 0.4  # of the tokens of messages, read for one observation
OVERFLOW = 1.2  # times the tokens of observations, above which the oldest lines are left out
DEFAULT_BUFFER_SHARE = 0.2  # of the tokens of messages, at which a job makes an observation
BACKGROUND_SHARE = 0.5  # of the tokens of observations, at which a reflection is prepared
ABSOLUTE_FROM = 100  # from which `blockAfter` is a number of tokens, as in the published protocol


@dataclass(frozen=True)
class ObservationLimits:
    """Numbers of tokens at which something happens to a thread."""

    message_tokens: int  # of raw messages, at which observations take their place
    buffer_tokens: int | None  # of messages without an observation, at which a job makes one; None for no such job
    kept_tokens: int  # of raw messages that stay when observations take the place of the others
    block_tokens: int  # of raw messages, above which a run waits for observations
    observation_tokens: int  # of observations, at which a reflection takes their place

    @property
    def trigger_tokens(self) -> int:
        """The tokens of messages without an observation at which a worker makes one."""
        return self.message_tokens if self.buffer_tokens is None else self.buffer_tokens

    @property
    def chunk_tokens(self) -> int:
        """The tokens of messages that are read for one observation."""
        return max(int(self.message_tokens * CHUNK_SHARE), 1)

    @property
    def reflection_tokens(self) -> int:
        """The tokens of observations at which a worker prepares a reflection."""
        share = BACKGROUND_SHARE if self.buffer_tokens is not None else 1
        return max(int(self.observation_tokens * share), 1)

    @property
    def log_tokens(self) -> int:
        """The tokens of observations that a model is given at most."""
        return int(self.observation_tokens * OVERFLOW)


def observation_limits(options: ObservationalOptions) -> ObservationLimits:
    """Return the limits of the options of an agent."""
    observation, total = options.observation, options.observation.message_tokens
    buffer, block = observation.buffer_tokens, observation.block_after
    if block < ABSOLUTE_FROM:
        block *= total
    return ObservationLimits(
        message_tokens=total,
        buffer_tokens=None if buffer is False else buffer_size(buffer, total),
        kept_tokens=int(total * (1 - observation.buffer_activation)),
        block_tokens=total if buffer is False else int(block),
        observation_tokens=options.reflection.observation_tokens,
    )


def buffer_size(value: float | None, total: int) -> int:
    """Return a share of the total, or a number of tokens, as tokens. None is the default."""
    share = DEFAULT_BUFFER_SHARE if value is None else value
    return max(int(share * total if share <= 1 else share), 1)


def observational_options(memory: object) -> ObservationalOptions | None:
    """Return the options of the memory of a configuration, or None without observational memory."""
    options = parse_memory_options(memory)
    return options.observational if options is not None else None


def observational_options_of_agent(agent: Agent | None) -> ObservationalOptions | None:
    """Return the options of the live version of an agent, or None."""
    version = agent.active_version if agent else None
    return observational_options(version.snapshot.get("memory")) if version else None


def requires_thread(memory: object) -> bool:
    """Return whether a memory observes threads, so that a run needs one."""
    options = observational_options(memory)
    return options is not None and options.scope == "thread"


def newest_lines(text: str, max_tokens: int) -> str:
    """Return the last lines of a text that fit a number of tokens. Of a line that alone is longer, its beginning."""
    if count_tokens(text) <= max_tokens:
        return text
    lines: list[str] = []
    total = 0
    for line in reversed(text.splitlines()):
        total += count_tokens(line) + 1
        if total > max_tokens:
            break
        lines.append(line)
    if not lines:
        return text.splitlines()[-1].encode()[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")
    return "\n".join(reversed(lines))
