import json
from io import BytesIO

import pytest

JSON = "application/json"


def send(http, body, content_type=JSON, **extra):
    return http.generic("POST", "/api/echo", body, content_type=content_type, **extra)


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", 'Application/JSON; charset="UTF-8"']
)
def test_a_json_body_is_parsed(http, content_type):
    response = send(http, '{"é": [1, true, null, "👩‍👩‍👧"], "__proto__": {}}', content_type)

    assert response.status_code == 201
    assert response["Content-Type"] == JSON
    assert response.content.decode() == '{"got":{"é":[1,true,null,"👩‍👩‍👧"],"__proto__":{}}}'


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/jsonp",
        "*/*",
        "application/*",
        "",
        "nonsense",
    ],
)
def test_another_content_type_is_415(http, content_type):
    response = send(http, "{}", content_type)

    assert response.status_code == 415
    assert response.json()["code"] == "unsupported_media_type"


@pytest.mark.parametrize("packing", ["gzip", "br", "deflate, gzip"])
def test_a_compressed_body_is_415(http, packing):
    response = send(http, "{}", HTTP_CONTENT_ENCODING=packing)

    assert response.status_code == 415
    assert response.json()["error"] == "Send the request body uncompressed, as application/json in UTF-8."


@pytest.mark.parametrize("content_type", ["", JSON, "text/plain", "application/x-www-form-urlencoded"])
def test_an_empty_body_needs_no_content_type(http, content_type):
    response = http.generic("PATCH", "/api/echo", "", content_type=content_type)

    assert response.status_code == 200
    assert response.json() == {}


def test_a_body_over_the_limit_is_413(http, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    response = send(http, json.dumps({"a": "x" * 100}))

    assert response.status_code == 413
    assert response.json() == {"error": "Request body too large", "code": "too_large"}


def test_a_body_at_the_limit_is_accepted(http, settings):
    body = json.dumps({"a": "x" * 100})
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = len(body)

    assert send(http, body).status_code == 201


def test_a_content_length_over_the_limit_is_413_without_reading(http):
    assert send(http, "{}", CONTENT_LENGTH="99999999999").status_code == 413


def test_a_truncated_body_is_refused(http):
    response = send(http, "{}", CONTENT_LENGTH="100", **{"wsgi.input": BytesIO(b"{}")})

    assert response.status_code == 400
    assert response.json()["issues"][0]["message"] == "The body ended before its declared length."


@pytest.mark.parametrize("length", ["abc", "-1", ""])
def test_an_invalid_content_length_is_no_server_error(http, length):
    assert send(http, "{}", CONTENT_LENGTH=length).status_code < 500


def test_an_invalid_body_reports_every_error(http):
    response = send(http, '{"a": 1e400, "b": {"c": 1, "c": 2}, "d": "\\u0000"}')

    assert response.status_code == 400
    assert response.json()["error"] == "Invalid request body"
    assert response.json()["code"] == "invalid_body"
    assert [issue["field"] for issue in response.json()["issues"]] == ["a", "b.c", "d"]


def test_malformed_json_names_line_and_column(http):
    response = send(http, '{"a":\n')

    assert response.status_code == 400
    assert "line 2, column 1" in response.json()["issues"][0]["message"]


@pytest.mark.parametrize("body", ["[]", "null", "1", '"x"', "true"])
def test_a_body_that_is_not_an_object_is_400(http, body):
    response = http.generic("PATCH", "/api/echo", body, content_type=JSON)

    assert response.status_code == 400
    assert response.json()["issues"] == [{"field": "", "message": "The body must be a JSON object."}]
