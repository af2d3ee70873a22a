"""Messages of failed runs."""

import time

import pytest
from django.core.exceptions import ValidationError
from pydantic_ai import exceptions as ai

from runs_app.engine.failures import UNKNOWN_FAILURE_MESSAGE, is_expected, log_message, run_failure_message
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers

MODEL = "openai/gpt-5"
KEY = "sk-proj-abc123DEF456ghi789JKL012mno345PQR"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValidationError("Choose another one."), "Choose another one."),
        (ai.ModelRateLimitError("gpt-5", "slow down"), "openai/gpt-5 receives too many requests."),
        (ai.ModelAuthenticationError("gpt-5", "bad key"), "openai/gpt-5 rejected the API key."),
        (ai.ModelNotFoundError("gpt-5", "no such model"), "The provider does not know openai/gpt-5."),
        (ai.ModelConnectionError("gpt-5", "no route"), "openai/gpt-5 could not be reached."),
        (ai.ModelTimeoutError("gpt-5", "late"), "openai/gpt-5 did not answer in time."),
        (ai.ModelHTTPError(418, "gpt-5", {"error": {"message": "I am a teapot"}}), "(418). I am a teapot."),
        (ai.ModelHTTPError(500, "gpt-5", '[{"error": {"message": "Broken"}}]'), "(500). Broken."),
        (ai.UsageLimitExceeded("exceed the request_limit of 2"), "The run reached its limit of steps"),
        (ai.UsageLimitExceeded("exceed the tool_calls_limit of 2"), "The run reached its limit of tool calls"),
        (ai.UsageLimitExceeded("exceed the total_tokens_limit of 2"), "The run reached its limit of tokens"),
        (
            ai.UnexpectedModelBehavior("Exceeded maximum output retries (1)"),
            "used. It was asked twice, but its answer",
        ),
        (ai.UnexpectedModelBehavior("what?"), "returned an answer that cannot be used. what?"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_failure_has_a_message(error, expected):
    message = run_failure_message(error, MODEL)

    assert expected in message
    assert message.endswith((".", "?"))
    assert is_expected(error)


@pytest.mark.parametrize(
    "error",
    [
        ai.ModelHTTPError(401, "gpt-5", {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
        ai.ModelAuthenticationError("gpt-5", f"The key {KEY} is wrong"),
        ai.ModelHTTPError(400, "gpt-5", f"key={KEY}"),
        ai.UserError(f"Authorization: Bearer {KEY}"),
        ai.ModelHTTPError(401, "gpt-5", {"error": {"message": "Incorrect API key: sk-pr**********345P."}}),
    ],
    ids=["in the body", "in the message", "a text body", "a header", "masked"],
)
def test_a_message_contains_no_key(error):
    message = run_failure_message(error, MODEL)

    assert KEY not in message
    assert "abc123" not in message
    assert "345P" not in message


@pytest.mark.parametrize(
    ("category", "status", "body", "expected"),
    [
        (ai.ModelRateLimitError, 429, None, "openai/gpt-5 receives too many requests. Try again shortly."),
        (ai.ModelRateLimitError, 429, {}, "openai/gpt-5 receives too many requests. Try again shortly."),
        (
            ai.ModelNotFoundError,
            404,
            {"detail": "Not Found"},
            "The provider does not know openai/gpt-5. Choose another model. Not Found.",
        ),
        (
            ai.ModelServerError,
            502,
            "<html><body>Bad gateway</body></html>",
            "The provider of openai/gpt-5 reported a server error (502). Try again.",
        ),
    ],
    ids=["no body", "an empty object", "a detail", "a page"],
)
def test_a_response_is_described_in_words_only(category, status, body, expected):
    error = ai.ModelHTTPError.for_category(category, status_code=status, model_name="gpt-5", body=body)

    assert run_failure_message(error, MODEL) == expected


def test_an_internal_error_has_a_generic_message():
    assert run_failure_message(KeyError("secret"), MODEL) == UNKNOWN_FAILURE_MESSAGE
    assert not is_expected(KeyError("secret"))


def test_a_long_message_is_truncated():
    assert len(run_failure_message(ai.UserError("word " * 500), MODEL)) < 400


@pytest.mark.parametrize("distance", range(20, 45))
def test_a_key_at_the_end_of_the_searched_text_is_hidden(distance):
    long_words = f"{'1' * 25} " * 152  # 3952 characters, of which 152 dots remain
    text = f"{long_words}{'x' * (48 - distance)} {KEY} was rejected."

    assert "sk-" not in run_failure_message(ai.UserError(text), MODEL)


def test_a_message_without_words_is_searched_in_linear_time():
    started = time.thread_time()

    run_failure_message(ai.ModelHTTPError(500, "gpt-5", "a" * 16_000_000), MODEL)
    run_failure_message(ai.ModelHTTPError(500, "gpt-5", {"error": {"message": "a" * 16_000_000}}), MODEL)

    assert time.thread_time() - started < 2


@pytest.mark.django_db
def test_a_message_contains_no_key_that_looks_like_a_word():
    house = ModelProvider(key="house", title="House", base_url="https://models.example.org")
    house.set_secret("sesame")
    house.save()
    cached_providers.load_providers()
    house.delete()  # the current answer may have started earlier
    cached_providers.load_providers()

    message = run_failure_message(
        ai.ModelHTTPError(401, "llama", {"error": {"message": "Not valid: Bearer sesame"}}), "house/llama"
    )

    assert message.endswith("Not valid: Bearer …")


def test_the_log_has_no_words_of_the_provider():
    error = ai.ModelHTTPError(400, "gpt-5", {"error": {"message": "'My diary' is not allowed"}})

    assert "My diary" in run_failure_message(error, MODEL)
    assert log_message(error, MODEL) == f"{MODEL} rejected the request (400)."
    assert log_message(ai.UserError("no such tool"), MODEL).endswith("configuration: no such tool.")
