"""Failure messages of runs, for users.

Imports pydantic-ai, which is heavy. Import this module only where an agent runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from django.core.exceptions import ValidationError
from pydantic_ai import exceptions as ai

from agentcms.db.outages import OUTAGE_ERRORS
from runs_app.exceptions import JournalError, find_run_error
from runs_app.providers.cached_providers import without_secrets

MAX_REASON_LENGTH = 300
MAX_SEARCHED_LENGTH = 4000  # characters of a provider's message in which keys are looked for; the rest is dropped
MAX_PARSED_LENGTH = 100_000  # characters of an error response that is parsed on the event loop
# Possible API keys or parts of them: long words with a digit, and words that begin like a key. Providers quote the
# keys that they reject.
_LONG_WORD = re.compile(r"[\w*./+=-]{20,}")
_KEY_WORD = re.compile(r"\b(?:sk|key|AIza)[\w*-]{6,}")

# How errors of pydantic-ai begin, and what users read instead.
REPLACED_MESSAGES = (
    (
        "Exceeded maximum output retries",
        "It was asked twice, but its answer was empty, or not the object that the schema describes.",
    ),
    (
        "Streamed response ended without",
        "It had no event of an answer. Try again, or check the URL of its provider.",
    ),
)

OUTAGE_MESSAGE = "The database was not available while the agent answered. Try again."
UNKNOWN_FAILURE_MESSAGE = "The server failed while the agent answered. The server log has the details."


def run_failure_message(error: BaseException, model: str) -> str:
    """Return the message of a failed run for its user. It contains no API key."""
    return _message(error, model, provider_reason)


def log_message(error: BaseException, model: str) -> str:
    """Return the message of a failed run for the log, without the words of the provider, which may quote a prompt."""
    return _message(error, model, lambda cause: provider_reason(cause) if isinstance(cause, ai.UserError) else "")


def _message(error: BaseException, model: str, read_reason: Callable[[BaseException], str]) -> str:
    error = find_run_error(error) or error
    if isinstance(error, ValidationError):
        return " ".join(error.messages)
    if isinstance(error, JournalError):
        return str(error)
    for error_type, template in FAILURE_MESSAGES:
        if isinstance(error, error_type):
            status = getattr(error, "status_code", "")
            return template.format(
                model=model, status=status, limit=exceeded_limit(error), reason=read_reason(error)
            ).strip()
    return OUTAGE_MESSAGE if is_database_outage(error) else UNKNOWN_FAILURE_MESSAGE


def is_expected(error: BaseException) -> bool:
    """Return True for errors of the model or the configuration, False for bugs of this application."""
    expected: list[type[BaseException]] = [
        ValidationError,
        JournalError,
        *(error_type for error_type, _ in FAILURE_MESSAGES),
    ]
    return find_run_error(error) is not None or isinstance(error, tuple(expected))


def is_database_outage(error: BaseException) -> bool:
    """Return whether the database was unavailable. A durable run continues from its last step when it is back."""
    cause: BaseException | None = None if is_expected(error) else error
    while cause is not None and not isinstance(cause, OUTAGE_ERRORS):
        cause = cause.__cause__
    return cause is not None


def exceeded_limit(error: BaseException) -> str:
    """Return the limit that a run reached. Users do not know the setting names that pydantic-ai quotes."""
    limits = {"request_limit": "steps", "tool_calls_limit": "tool calls"}
    return next((label for name, label in limits.items() if name in str(error)), "tokens")


def provider_reason(error: BaseException) -> str:
    """Return the message of the provider or of pydantic-ai as a sentence, without possible API keys."""
    body = getattr(error, "body", None)
    # The message of an error with a status code lists its members.
    message = "" if isinstance(error, ai.ModelHTTPError) else getattr(error, "message", "") or str(error)
    text = str(_body_message(body) or message)
    for beginning, reason in REPLACED_MESSAGES:
        if text.startswith(beginning):
            return reason
    text = hide_keys(text).strip()
    if len(text) > MAX_REASON_LENGTH:
        text = f"{text[:MAX_REASON_LENGTH]}…"
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."


def hide_keys(text: str) -> str:
    """Replace everything that may be an API key in the beginning of a text, and drop the rest of a long one."""
    if len(text) > MAX_SEARCHED_LENGTH:
        # The last word may be the beginning of a key that no longer looks like one.
        text = text[:MAX_SEARCHED_LENGTH].rpartition(" ")[0] or "…"
    text = _LONG_WORD.sub(lambda word: "…" if any(map(str.isdigit, word[0])) else word[0], without_secrets(text))
    return _KEY_WORD.sub("…", text)


def _body_message(body: object) -> str:
    """Return the message in an error response: `{"error": {"message": …}}`, or `{"detail": …}` of some servers."""
    if isinstance(body, str):
        try:
            body = json.loads(body[:MAX_PARSED_LENGTH])
        except (ValueError, RecursionError):
            return "" if str(body).lstrip().startswith("<") else str(body)  # a page of HTML says nothing more
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message", inner.get("detail")) if isinstance(inner, dict) else inner
        return message if isinstance(message, str) else ""
    return ""


FAILURE_MESSAGES: tuple[tuple[type[BaseException], str], ...] = (
    (ai.ModelRateLimitError, "{model} receives too many requests. Try again shortly. {reason}"),
    (ai.ModelQuotaExceededError, "The quota of the account for {model} is used up. {reason}"),
    (ai.ModelAuthenticationError, "{model} rejected the API key. Ask an administrator to check it. {reason}"),
    (ai.ModelNotFoundError, "The provider does not know {model}. Choose another model. {reason}"),
    (ai.ModelContextWindowExceededError, "The conversation is too long for {model}. Start a new one."),
    (ai.ModelTimeoutError, "{model} did not answer in time. Try again."),
    (ai.ModelConnectionError, "{model} could not be reached. Try again, or check the URL of its provider."),
    (ai.ModelUnavailableError, "{model} is not available. Try again shortly. {reason}"),
    (ai.ModelServerError, "The provider of {model} reported a server error ({status}). Try again. {reason}"),
    (ai.ModelHTTPError, "{model} rejected the request ({status}). {reason}"),
    (ai.ModelAPIError, "The request to {model} failed. {reason}"),
    (ai.ContentFilterError, "The content filter of {model} blocked the answer."),
    (ai.UsageLimitExceeded, "The run reached its limit of {limit} and was stopped. Ask for less in one message."),
    (ai.UnexpectedModelBehavior, "{model} returned an answer that cannot be used. {reason}"),
    (ai.UserError, "The agent cannot run with this configuration: {reason}"),
    (ai.AgentRunError, "The agent could not answer. {reason}"),
)
