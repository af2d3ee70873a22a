"""Headers with parameters that Python's parser of e-mail cannot read."""

import pytest
from django.core.handlers.wsgi import WSGIRequest

from access_app.authentication import is_known_sender
from agentcms.middleware.wsgi_charset import require_utf8
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

# In parts and as a whole, in an unknown charset, and with more digits than Python converts.
INVALID = ["a*=x-none'en'b", "charset*=x-none'en'b", f"a*{'1' * 5000}=b"]
PART = b'--x\r\nContent-Disposition: form-data; name="a"; %b\r\n\r\ntext\r\n--x--\r\n' % INVALID[0].encode()


@pytest.mark.parametrize("parameters", INVALID)
def test_a_body_with_an_invalid_type_is_of_another_type(rf, parameters):
    requests = []
    environ = rf.post("/api/stored/agents").environ | {"CONTENT_TYPE": f"application/json; {parameters}"}

    require_utf8(lambda environ, start: requests.append(WSGIRequest(environ)) or [])(environ, lambda *args: None)

    assert [request.content_type for request in requests] == ["application/octet-stream"]


def test_a_slow_body_of_an_invalid_type_may_be_sent_by_a_known_caller(rf):
    token = api_key(member("editor"))
    for key, is_known in ((token, True), ("no key", False)):
        request = rf.post("/api/stored/agents", headers={"authorization": f"Bearer {key}"})
        environ = request.environ | {"CONTENT_TYPE": f"text/plain; {INVALID[0]}"}

        assert is_known_sender(environ) is is_known


@pytest.mark.parametrize("parameters", INVALID)
def test_an_invalid_media_type_is_not_accepted(client, parameters):
    headers = {"authorization": f"Bearer {api_key(member('viewer'))}"}

    refused = client.get("/api/stored/agents", headers={**headers, "accept": f"application/json; {parameters}"})
    answer = client.get("/api/stored/agents", headers={**headers, "accept": f"text/csv; {parameters}, */*"})

    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    assert answer.status_code == 200


def test_a_part_of_a_form_with_invalid_parameters_is_left_out(client):
    answer = client.generic("POST", "/sign-in", PART, content_type="multipart/form-data; boundary=x")

    assert answer.status_code == 422
    assert answer.context["form"].data == {}
