"""Charsets of request bodies other than UTF-8."""

import httpx
import pytest

from tests.served import Served

ODD = ["utf-7", "utf-16", "idna", "punycode", "rot13", "hex", "zip", "undefined", "unicode_escape", "latin-1", "UTF_8"]
FORMS = {
    "application/x-www-form-urlencoded": b"username=+2AA-&password=%ff",
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n+2AA-\r\n--x--\r\n',
}


@pytest.fixture(scope="module")
def http(served: Served):
    with httpx.Client(base_url=served.base_url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_in_another_charset_is_refused(http, kind):
    for charset in ODD:
        for path in ("/sign-in", "/admin/access_app/membership/add/", "/api/stored/agents"):
            answer = http.post(path, content=FORMS[kind], headers={"Content-Type": f'{kind}; Charset="{charset}"'})

            assert (answer.status_code, answer.text) == (415, "Send forms in UTF-8.\n"), (charset, path)


@pytest.mark.parametrize("kind", FORMS)
def test_a_form_in_utf_8_is_accepted(http, kind):
    for charset in ("utf-8", "UTF8"):
        # The name of a media type is case-insensitive.
        for media_type in (kind, kind.replace("form", "Form")):
            headers = {"Content-Type": f"{media_type}; charset={charset}", "Accept": "Text/HTML"}
            answer = http.post("/sign-in", content=FORMS[kind], headers=headers)

            assert answer.status_code == 403  # it has no CSRF token


def test_a_form_with_the_cookie_of_a_page_is_read_in_utf_8(http):
    http.cookies.clear()
    http.get("/sign-in")
    for charset in ('"UTF8"', "utf8", "utf-8"):
        kind = f"application/x-www-form-urlencoded; charset={charset}"
        answer = http.post(
            "/sign-in", content=FORMS["application/x-www-form-urlencoded"], headers={"Content-Type": kind}
        )

        assert answer.status_code == 403


def test_a_url_is_utf_8_whatever_charset_the_body_has(http):
    for charset in ODD:
        for path, status in (("/sign-in?next=/%ff+2AA-", 200), ("/api/stored/agents?search=%C3%BC", 401)):
            answer = http.get(path, headers={"Content-Type": f"text/plain; charset={charset}"})

            assert answer.status_code == status, (charset, path)


def test_a_json_body_in_another_charset_is_a_json_415(http, served):
    headers = {"Authorization": f"Bearer {served.keys['root']}"}
    for charset in ODD:
        kind = {"Content-Type": f"application/json; charset={charset}"}
        answer = http.post("/api/stored/agents", content=b"{}", headers=headers | kind)

        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), charset
