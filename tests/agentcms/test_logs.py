"""Log lines: request ids, formats and masked data."""

import json
import logging

import pytest
from django.db import DataError, OperationalError
from django.http import HttpResponse
from django.utils.functional import SimpleLazyObject

from agentcms import logs
from agentcms.api.exceptions import api_error
from agentcms.observability.middleware import RequestLogMiddleware
from tests.api_client import AGENTS, Caller
from tests.factories import UserFactory, api_key, member


@pytest.fixture
def log_lines(caplog):
    """Return a function that reads the log as parsed JSON lines."""
    return lambda: [json.loads(logs.JSONFormatter().format(record)) for record in caplog.records]


def logged(message, *arguments, error=None, formatter=logs.JSONFormatter):
    record = logging.LogRecord("name", logging.ERROR, __file__, 1, message, arguments, None)
    if error:
        try:
            raise error
        except Exception as caught:
            record.exc_info = (type(caught), caught, caught.__traceback__)
    return formatter().format(record)


@pytest.mark.django_db
def test_a_response_carries_its_request_id(client):
    answer = client.get("/healthz", headers={"x-request-id": "proxy-7.a_b"})

    assert answer.headers["X-Request-ID"] == "proxy-7.a_b"


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["", "a b", "x" * 65, 'quote"', "semi;colon", "ümlaut"])
def test_an_invalid_request_id_is_replaced(client, given):
    made = client.get("/healthz", HTTP_X_REQUEST_ID=given).headers["X-Request-ID"]

    assert made != given
    assert logs.is_valid_request_id(made)


@pytest.mark.django_db
def test_requests_are_logged_where_enabled(client, settings, caplog, log_lines):
    settings.LOG_REQUESTS = True
    caplog.set_level("INFO")
    user = UserFactory()
    client.force_login(user)

    client.get("/api/stored/agents/nobody?secret=1", headers={"x-request-id": "seven"})

    line = next(line for line in log_lines() if line["logger"] == "agentcms.requests")
    assert (line["requestId"], line["status"], line["user"], line["method"]) == ("seven", 404, user.pk, "GET")
    assert line["route"] == "api/stored/agents/<str:agent_id>"
    assert "secret" not in json.dumps(line)


def test_the_user_of_a_page_is_not_read_for_its_log_line_alone(rf, settings, caplog, log_lines):
    """The database may be away, which is why the page is an error."""
    settings.LOG_REQUESTS = True
    caplog.set_level("INFO")

    def unavailable():
        raise OperationalError("connection refused")

    request = rf.get("/")
    request.user = SimpleLazyObject(unavailable)

    RequestLogMiddleware(lambda request: HttpResponse(status=503))(request)

    assert [(line["status"], line["user"]) for line in log_lines()] == [(503, None)]


@pytest.mark.parametrize("formatter", [logs.TextFormatter, logs.JSONFormatter])
def test_a_logged_error_contains_no_request_data(formatter):
    text = logged("It failed.", error=ValueError("You are a secret assistant."), formatter=formatter)

    assert "ValueError" in text
    assert "test_logs.py" in text
    assert "assistant" not in text


def test_a_logged_system_error_contains_its_message():
    text = logged("It failed.", error=OperationalError("connection refused\nDETAIL: You are a secret assistant."))

    assert "connection refused" in text
    assert "assistant" not in text


def test_a_database_outage_is_logged_without_data(log_lines):
    api_error(OperationalError("deadlock detected\nDETAIL: You are a secret assistant."))

    [line] = log_lines()
    assert line["message"] == "The database was not available in time: OperationalError: deadlock detected"


def test_keys_and_passwords_are_masked_everywhere():
    key = "acms_0a1b2c3d_" + "Z" * 43

    text = logged("Used %s at %s", key, "redis://user:hunter2@host:6379/0")

    assert "Z" * 43 not in text
    assert "hunter2" not in text
    assert "@host:6379" in text


def test_a_text_cannot_begin_a_line_of_its_own():
    text = logged("GET %s", "/a\nERROR forged\r\x1b[2J\u2028é", formatter=logs.TextFormatter)

    assert text.startswith("ERROR name: GET /a\\nERROR forged\\r\\x1b[2J\\u2028é")
    assert text.isprintable()


def test_celery_logs_no_error_message():
    record = logging.LogRecord("celery.app.trace", logging.ERROR, __file__, 1, "Task raised %s", ("secret",), None)
    record.data = {"name": "jobs_app.tasks.run_job", "id": "7"}
    record.exc_info = (ValueError, ValueError("secret"), None)

    text = logs.JSONFormatter().format(record)

    assert "jobs_app.tasks.run_job[7] failed" in text
    assert "secret" not in text


def test_a_message_with_a_line_break_is_logged_as_one_line():
    assert "\n" not in logged("Two\nlines")


PROMPT = "You are Sesame, who opens for nobody."


@pytest.mark.django_db
def test_prompts_and_answers_are_not_logged(caplog, settings, monkeypatch, log_lines):
    """Log everything during successful, refused and failing requests."""
    settings.LOG_REQUESTS = True
    caplog.set_level("DEBUG")
    caller = Caller(api_key(member("publisher")))
    caller.client.raise_request_exception = False
    body = {"id": "a", "name": "A", "instructions": PROMPT, "model": {"provider": "demo", "name": "echo"}}

    statuses = [
        caller.post(AGENTS, body).status_code,
        caller.post(AGENTS, body).status_code,
        caller.post(AGENTS, {**body, "id": "b", "tools": 7}).status_code,
        caller.get(f"{AGENTS}?search=Sesame").status_code,
    ]
    for error in (OperationalError("away\nDETAIL: " + PROMPT), DataError(PROMPT), ValueError(PROMPT)):
        monkeypatch.setattr("agentcms.db.statements.write_batch.WriteBatch.send", raiser(error))
        statuses.append(caller.patch(f"{AGENTS}/a", {"instructions": PROMPT + "!"}).status_code)

    assert statuses == [201, 409, 400, 200, 503, 400, 500]
    assert len(log_lines()) > len(statuses)
    assert "Sesame" not in json.dumps(log_lines())


def raiser(error):
    def fail(*arguments, **named):
        raise error

    return fail
