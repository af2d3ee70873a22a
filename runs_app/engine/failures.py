"""Why a run failed, as a sentence for people. It imports pydantic-ai: import it where an agent runs."""

from __future__ import annotations

import json
import re
from typing import Any

from django.core.exceptions import ValidationError
from pydantic_ai import exceptions as ai

from runs_app.exceptions import find_run_fault
from runs_app.providers.table import without_secrets

LONGEST_REASON = 300
# What could be a key, or a part of one: a long word with a digit in it. A provider that refuses a key quotes it.
_SECRET = re.compile(r"(?=[\w*./+-]*\d)[\w*./+=-]{20,}|\b(?:sk|key|AIza)[\w*-]{6,}")

UNKNOWN = "Something went wrong in the server while the agent answered. The log has more."


def sentence(error: BaseException, model: str) -> str:
    """What to tell of an error; nothing in it quotes a key."""
    error = find_run_fault(error) or error
    if isinstance(error, ValidationError):
        return " ".join(error.messages)
    for kind, text in SENTENCES:
        if isinstance(error, kind):
            said = {"status": getattr(error, "status_code", ""), "limit": limit(error), "reason": reason(error)}
            return text.format(model=model, **said).strip()
    return UNKNOWN


def is_known(error: BaseException) -> bool:
    """Whether it is a mishap of the model or the configuration rather than a fault of ours."""
    return find_run_fault(error) is not None or isinstance(error, (ValidationError, *(kind for kind, _ in SENTENCES)))


def limit(error: BaseException) -> str:
    """Which limit a run reached; pydantic-ai names its own settings, which mean nothing to our callers."""
    named = {"request_limit": "steps", "tool_calls_limit": "tool calls"}
    return next((words for name, words in named.items() if name in str(error)), "tokens")


def reason(error: BaseException) -> str:
    """What the provider, or pydantic-ai, says of it, without what could be a key."""
    said = _message(getattr(error, "body", None)) or getattr(error, "message", "") or str(error)
    said = _SECRET.sub("…", without_secrets(str(said))).strip()
    if len(said) > LONGEST_REASON:
        said = f"{said[:LONGEST_REASON]}…"
    return said if not said or said.endswith((".", "!", "?", "…")) else f"{said}."


def _message(body: Any) -> str:
    """The message in what a provider answers: `{"error": {"message": …}}`, more or less."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return body
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        inner = body.get("error", body)
        found = inner.get("message") if isinstance(inner, dict) else inner
        return found if isinstance(found, str) else ""
    return ""


SENTENCES: tuple[tuple[type[BaseException], str], ...] = (
    (ai.ModelRateLimitError, "{model} is asked too much at the moment. Try again shortly. {reason}"),
    (ai.ModelQuotaExceededError, "The account of {model} has used up what it may. {reason}"),
    (ai.ModelAuthenticationError, "{model} refuses our key. Ask an administrator to look at it. {reason}"),
    (ai.ModelNotFoundError, "{model} is not known to its provider. Choose another model. {reason}"),
    (ai.ModelContextWindowExceededError, "The conversation is longer than {model} can read. Begin a new one."),
    (ai.ModelTimeoutError, "{model} did not answer in time. Try again."),
    (ai.ModelConnectionError, "{model} could not be reached. Try again, or look at its address."),
    (ai.ModelUnavailableError, "{model} is not available at the moment. Try again shortly. {reason}"),
    (ai.ModelServerError, "The provider of {model} has a fault of its own ({status}). Try again. {reason}"),
    (ai.ModelHTTPError, "{model} refused the request ({status}). {reason}"),
    (ai.ModelAPIError, "{model} could not be asked. {reason}"),
    (ai.ContentFilterError, "{model} refused to answer this."),
    (ai.UsageLimitExceeded, "The run reached its limit of {limit} and was stopped. Ask for less at once."),
    (ai.UnexpectedModelBehavior, "{model} gave an answer that cannot be used. {reason}"),
    (ai.UserError, "The agent cannot run like this: {reason}"),
    (ai.AgentRunError, "The agent could not answer. {reason}"),
)
