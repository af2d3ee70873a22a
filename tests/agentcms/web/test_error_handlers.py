import pytest
from django.core import exceptions as django
from django.db import DataError, OperationalError
from django.http import Http404

from agentcms import settings as project_settings

CASES = [
    (Http404(), 404, "not_found"),
    (django.PermissionDenied("No."), 403, "forbidden"),
    (django.SuspiciousOperation("odd"), 400, "bad_request"),
    (django.BadRequest("odd"), 400, "bad_request"),
    (django.RequestDataTooBig("big"), 413, "too_large"),
    (OperationalError("connection refused"), 503, "unavailable"),
    (DataError("a secret"), 400, "bad_request"),
    (OperationalError("LIKE or GLOB pattern too complex"), 400, "bad_request"),
    (ValueError("a secret"), 500, "server_error"),
]


@pytest.mark.parametrize(("exception", "status", "code"), CASES, ids=lambda case: type(case).__name__)
def test_an_unhandled_exception_below_api_is_json(raised, exception, status, code):
    response = raised(exception, "/api/plain")

    assert response.status_code == status
    assert response["Content-Type"] == "application/json"
    assert response.json()["code"] == code
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize(("exception", "status", "code"), CASES, ids=lambda case: type(case).__name__)
def test_an_unhandled_exception_elsewhere_is_a_page(raised, exception, status, code):
    response = raised(exception, "/plain")

    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("url", ["/api", "/api/", "/api/nothing", "/api/echo/", "/api//echo", "/api/%00", "/api/%ff"])
@pytest.mark.parametrize("method", ["get", "post", "delete", "options", "head"])
def test_an_unknown_route_is_a_json_404(http, url, method):
    response = getattr(http, method)(url)

    assert response.status_code == 404
    assert response["Content-Type"] == "application/json"


def test_an_unknown_api_route_is_a_json_404_with_debug_too(http, settings):
    settings.DEBUG = True

    assert http.post("/api/last/nothing", "{", content_type="text/plain").json()["code"] == "not_found"


def test_an_unknown_page_is_an_html_404(http):
    assert http.get("/nothing")["Content-Type"].startswith("text/html")
    assert http.get("/apixyz")["Content-Type"].startswith("text/html")


def test_a_503_page_names_the_seconds_to_wait(raised):
    assert raised(OperationalError("connection refused"), "/plain")["Retry-After"] == "1"


@pytest.mark.parametrize(
    ("exception", "number", "heading"),
    [(OperationalError("connection refused"), 503, "Temporarily unavailable"), (ValueError(), 500, "Server error")],
)
def test_the_page_of_a_server_error_shows_its_status(raised, settings, exception, number, heading):
    settings.TEMPLATES = project_settings.TEMPLATES
    html = raised(exception, "/plain").content.decode()

    assert f'<p class="error-number">{number}</p>' in html
    assert f"<h1>{heading}</h1>" in html


@pytest.mark.parametrize(
    ("exception", "number", "reason"),
    [
        (DataError("a secret"), 400, "The request cannot be read."),
        (django.SuspiciousOperation("a secret"), 400, "The request cannot be read."),
        (django.DisallowedHost("a secret"), 400, "This host name is not served here."),
        (django.RequestDataTooBig("a secret"), 413, "Request body too large."),
    ],
)
def test_the_page_of_a_refused_request_shows_its_status_and_reason(raised, settings, exception, number, reason):
    settings.TEMPLATES = project_settings.TEMPLATES
    response = raised(exception, "/plain")
    html = response.content.decode()

    assert response.status_code == number
    assert f'<p class="error-number">{number}</p>' in html
    assert "<h1>Request refused</h1>" in html
    assert reason in html
    assert "secret" not in html


def test_an_unknown_host_is_refused_in_json_with_one_line_in_the_log(http, caplog):
    response = http.get("/api/echo", HTTP_HOST="evil.example")

    assert response.status_code == 400
    assert response.json()["code"] == "bad_host"
    (record,) = caplog.records
    assert (record.levelname, record.exc_info, "'evil.example'" in record.message) == ("WARNING", None, True)


def test_a_nul_in_the_path_is_400(http):
    response = http.get("/api/named/a%00b")

    assert response.status_code == 400
    assert response.json()["error"] == "Invalid path parameters"
    assert response.json()["issues"][0]["field"] == "agentId"


@pytest.mark.parametrize(
    ("typed", "id"), [("a%20b", "a b"), ("%C3%A9", "é"), ("%FF", "%FF"), ("__proto__", "__proto__")]
)
def test_unusual_ids_reach_the_view(http, typed, id):
    assert http.get(f"/api/named/{typed}").json() == {"id": id}
