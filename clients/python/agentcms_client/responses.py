"""Parsing of responses into results and errors, for both clients."""

from __future__ import annotations

from typing import Any

import httpx

from agentcms_client.json_types import JSONObject


class ApiError(Exception):
    """A response with an error status.

    `code` is the stable code of the API, `issues` the list of problems by field, and `body` the whole response.
    """

    def __init__(self, status: int, body: JSONObject) -> None:
        super().__init__(body.get("error") or f"HTTP {status}")
        self.status = status
        self.body = body
        self.code: str = body.get("code", "")
        self.issues: list[dict[str, str]] = body.get("issues", [])

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle, with which exceptions of another process arrive."""
        return type(self), (self.status, self.body), vars(self)


class Stale(ApiError):
    """A 412: somebody changed the agent since it was read.

    `may_be_own` is True if the response of an earlier attempt was lost: the change may be that of this call.
    """

    may_be_own = False


def parse_response(response: httpx.Response, *, is_file: bool = False) -> Any:
    """Return the body of a successful response, of a file as bytes. Raise ApiError for any other."""
    if response.is_success:
        return response.content if is_file else response.json()
    raise response_error(response)


def response_error(response: httpx.Response) -> ApiError:
    """Return the exception for a response with an error status."""
    return (Stale if response.status_code == 412 else ApiError)(response.status_code, error_body(response))


def error_body(response: httpx.Response) -> JSONObject:
    """Return the body of an error, also of one that a proxy sends: as text, or not at all."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    if response.has_redirect_location:
        return {"error": f"The server redirects to {response.headers['Location']}. Use that address."}
    if "text/html" in response.headers.get("Content-Type", ""):
        return {"error": f"The response is a web page with the status {response.status_code}. Check the address."}
    return {"error": response.text[:200]}
