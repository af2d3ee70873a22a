import sqlite3

import psycopg
import pytest
from django.core import exceptions as django
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, ProgrammingError
from django.http import Http404
from rest_framework import exceptions as drf

from agentcms import errors
from agentcms.api.exceptions import api_error
from agentcms.api.renderers import encode_json


def with_cause(exception, name):
    exception.__cause__ = sqlite3.OperationalError("database is locked")
    exception.__cause__.sqlite_errorname = name
    return exception


def missing_row():
    """Return the error of PostgreSQL for a row that refers to one that is not there."""
    exception = IntegrityError("violates foreign key constraint")
    exception.__cause__ = psycopg.errors.ForeignKeyViolation()
    return exception


DELETED = "Something that this request uses was deleted at the same moment. Read it again."
SEND = "Send the value of the cookie csrftoken as the header X-CSRFToken, or use an API key."
MOST = "A form may have at most"
CASES = [
    (errors.NotFound("Stored agent with id x not found"), 404, "not_found", "Stored agent with id x not found"),
    (errors.Conflict("Agent with id x already exists"), 409, "conflict", "Agent with id x already exists"),
    (errors.Unprocessable("No."), 422, "unprocessable", "No."),
    (errors.PreconditionFailed("Ada saved."), 412, "precondition_failed", "Ada saved."),
    (errors.Forbidden("A publisher may do this."), 403, "forbidden", "A publisher may do this."),
    (errors.Unavailable(), 503, "unavailable", "The server is busy. Try again shortly."),
    (drf.NotAuthenticated(), 401, "unauthorized", "Invalid or expired token"),
    (drf.AuthenticationFailed("secret reason"), 401, "unauthorized", "Invalid or expired token"),
    (drf.PermissionDenied("CSRF Failed: no cookie"), 403, "csrf_failed", f"CSRF Failed: no cookie. {SEND}"),
    (drf.NotFound(), 404, "not_found", "Not found."),
    (drf.ParseError("Half a body."), 400, "invalid_body", "Invalid request body"),
    (drf.APIException(), 500, "error", "A server error occurred."),
    (Http404("No Secret matches the given query."), 404, "not_found", "There is nothing at this address."),
    (django.PermissionDenied(), 403, "forbidden", "You may not do this."),
    (django.RequestDataTooBig(), 413, "too_large", "Request body too large"),
    (django.SuspiciousOperation(), 400, "bad_request", "The request cannot be read."),
    (django.TooManyFieldsSent(), 400, "too_many_fields", f"{MOST} 10,000 fields. Choose fewer entries at once."),
    (django.TooManyFilesSent(), 400, "too_many_files", f"{MOST} 100 files. Upload fewer at once."),
    (django.DisallowedHost("evil"), 400, "bad_host", "This host name is not served here."),
    (with_cause(OperationalError(), "SQLITE_BUSY"), 503, "unavailable", "The server is busy. Try again shortly."),
    (OperationalError("connection refused"), 503, "unavailable", "The server is busy. Try again shortly."),
    (missing_row(), 409, "conflict", DELETED),
    (IntegrityError("FOREIGN KEY constraint failed"), 409, "conflict", DELETED),
    (DatabaseError("Save with update_fields did not affect any rows."), 409, "conflict", DELETED),
    (DatabaseError("Forced update did not affect any rows."), 409, "conflict", DELETED),
    (InterfaceError("closed"), 503, "unavailable", "The server is busy. Try again shortly."),
    (django.ValidationError("Not so.", code="rule"), 400, "rule", "Not so."),
]


@pytest.mark.parametrize(("exception", "status", "code", "error"), CASES, ids=lambda case: type(case).__name__)
def test_every_exception_has_the_same_error_format(raised, exception, status, code, error):
    response = raised(exception)

    assert response.status_code == status
    assert response["Content-Type"] == "application/json"
    assert response.json()["error"] == error
    assert response.json()["code"] == code
    assert set(response.json()) <= {"error", "code", "issues"}


def test_a_401_names_the_authentication_scheme(raised):
    assert raised(drf.NotAuthenticated())["WWW-Authenticate"] == 'Bearer realm="agentcms"'


def test_a_429_names_the_seconds_to_wait(raised, http):
    assert raised(errors.Unavailable(seconds=3))["Retry-After"] == "3"
    assert http.get("/api/throttled").status_code == 429
    assert http.get("/api/throttled")["Retry-After"] == "2"
    assert http.get("/api/throttled").json()["error"] == "Too many requests. Try again in 2 seconds."


def test_a_412_carries_the_current_etag(raised):
    assert raised(errors.PreconditionFailed("Ada saved.", '"5-x"'))["ETag"] == '"5-x"'


def test_a_validation_error_uses_wire_names_and_names_of_the_caller(raised):
    rule = django.ValidationError(
        {"change_message": ["Too long."], "metadata.my_key[0].a_b": "Bad.", "__all__": "No."}
    )

    response = raised(rule)

    assert response.status_code == 400
    assert response.json() == {
        "error": "Invalid request body",
        "code": "invalid_body",
        "issues": [
            {"field": "changeMessage", "message": "Too long."},
            {"field": "metadata.my_key[0].a_b", "message": "Bad."},
            {"field": "", "message": "No."},
        ],
    }


def test_drf_error_details_become_issues(raised):
    detail = {"per_page": ["Bad."], "rows": [{}, {"a": ["Worse."]}], "non_field_errors": ["No."]}

    issues = raised(drf.ValidationError(detail)).json()["issues"]

    assert [issue["field"] for issue in issues] == ["perPage", "rows[1].a", ""]


def test_at_most_a_hundred_issues_are_reported():
    assert len(errors.BadRequest("request body", [("a", "Bad.")] * 1000).body["issues"]) == errors.MAX_ISSUES


def test_an_error_with_a_lone_surrogate_is_valid_json(raised):
    response = raised(errors.NotFound("No \udc80 here."))

    assert response.status_code == 404
    assert b"\\udc80" in response.content


@pytest.mark.parametrize(
    "exception",
    [
        ValueError("bug"),
        with_cause(OperationalError("no such table"), "SQLITE_ERROR"),
        IntegrityError("UNIQUE constraint failed: x.y"),
        DatabaseError("another error"),
        ProgrammingError("a statement that did not affect any rows."),
    ],
)
def test_an_unexpected_exception_is_raised(exception):
    assert api_error(exception) is None


def test_an_unsupported_method_is_405_with_the_allowed_methods(http):
    response = http.delete("/api/echo")

    assert response.status_code == 405
    assert response.json()["code"] == "method_not_allowed"
    assert response["Allow"] == "GET, POST, PATCH, HEAD"


def test_an_unsupported_format_is_406(http):
    response = http.get("/api/echo", HTTP_ACCEPT="text/html")

    assert response.status_code == 406
    assert response.json()["code"] == "not_acceptable"


@pytest.mark.parametrize("accept", ["*/*", "application/json", "///", ";;;", "", "application/json;q=0.1"])
def test_unusual_accept_headers_are_no_server_error(http, accept):
    assert http.get("/api/echo", HTTP_ACCEPT=accept).status_code in (200, 406)


def test_head_responds_without_a_body(http):
    assert http.head("/api/echo").status_code == 200
    assert http.head("/api/echo").content == b""


def test_options_names_the_allowed_methods(http):
    refused = http.options("/api/echo")

    assert refused.status_code == 405
    assert "GET" in refused["Allow"]


def test_encoded_json_is_sent_unchanged(http):
    assert http.get("/api/echo").content == b'{"raw": true}'


def test_a_value_without_json_form_raises():
    with pytest.raises(TypeError):
        encode_json({"a": object()})
