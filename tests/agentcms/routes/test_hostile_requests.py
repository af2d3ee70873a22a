"""Hostile requests to every route of tools, knowledge, evaluations and conversations: no 5xx, and nothing stored.

The members of a body and the parameters of a query are those that the OpenAPI document names.
"""

import os

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.agentcms.routes.conftest import values_of
from tests.agentcms.routes.test_team_isolation import APPLICATIONS, STREAMED
from tests.routes import routes_of

pytestmark = pytest.mark.django_db

ROUTES = [route for route in routes_of(*APPLICATIONS) if route.is_api]
DEPTH = 3000
RAW = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b"\xff\xfe",
    b"[" * DEPTH + b"]" * DEPTH,
    b'{"a":' * DEPTH + b"1" + b"}" * DEPTH,
    b'{"a": 1e999}',
    b'{"__proto__": {}, "": 1}',
]
DEEP = b'{"a":' * 200 + b"1" + b"}" * 200
VALUES = [
    b"null",
    b"true",
    b"-1",
    b"1e400",
    b"9" * 400,
    b"NaN",
    b'""',
    b'"a\\u0000b"',
    b'"\\ud800"',
    b'"' + b"x" * 300_000 + b'"',
    b"[]",
    b"[null, [1], {}]",
    b'{"\\u0000": "\\udfff"}',
    b'[{"id": "\\ud800", "type": [], "text": {}, "role": 5}]',
    DEEP,
    b"[" + b"1," * 5000 + b"1]",
]
QUERIES = ["%00", "%ED%A0%80", "-1", "9" * 400, "[[[[", "{}", "%7B%22a%22:", "x" * 5000, "NaN", "null"]
PATHS = ["%00", "%ED%A0%80", "x" * 3000, "-1", "9" * 60, "%0A", "..%5C", "%F0%9F%92%A9"]
WRITES = ("INSERT", "UPDATE", "DELETE")
OF_CALLERS = 'UPDATE "access_app_apikey"'  # when a key was last used


@pytest.fixture
def document(team):
    client = Client(headers={"Authorization": f"Bearer {team.key}"})
    return client.get("/api/schema").json()


class Attacker:
    """The manager of the team. What a request writes is rolled back after it."""

    def __init__(self, key):
        self.client = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)
        self.count = 0

    def send(self, case, method, address, content=b""):
        with transaction.atomic(), CaptureQueriesContext(connection) as queries:
            answer = self.client.generic(method, address, content, content_type="application/json")
            if answer.streaming:
                b"".join(answer.streaming_content)
            transaction.set_rollback(True)
        assert answer.status_code < 500 or answer.status_code == 501, (case, content[:200], answer.content[:500])
        self.count += 1
        if answer.status_code >= 400:
            statements = [query["sql"] for query in queries]
            is_undone = any(sql.startswith("ROLLBACK TO") for sql in statements)
            written = [sql for sql in statements if sql.startswith(WRITES) and not sql.startswith(OF_CALLERS)]
            assert is_undone or not written, (case, content[:200], written)


def operations(document, route):
    """Return the method and the operation of each documented method of a route."""
    for path, item in document["paths"].items():
        if shape_of(path.removeprefix("/api").strip("/"), "{") == shape_of(route.path.removeprefix("api/"), "<"):
            return {method.upper(): operation for method, operation in item.items() if isinstance(operation, dict)}
    return {}


def shape_of(path, bracket):
    """Return the parts of a path, without the names of its parameters."""
    return [part.startswith(bracket) or part for part in path.split("/")]


def members_of(document, operation):
    """Return the names of the members of the body of an operation."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = next((kind["schema"] for name, kind in content.items() if "json" in name), {})
    names, waiting = {}, [schema]
    while waiting:
        one = waiting.pop()
        if "$ref" in one:
            name = one["$ref"].rsplit("/", 1)[-1]
            one = document["components"]["schemas"][name]
        names |= dict.fromkeys(one.get("properties", {}))
        waiting += [*one.get("anyOf", []), *one.get("oneOf", []), *one.get("allOf", [])]
    return [*names]


def bodies(members, is_short):
    """Return bodies: what is not an object, then each value in all members, then, in a drill, in each alone."""
    yield from RAW
    for value in VALUES:
        yield b"{" + b", ".join(b'"%s": %s' % (name.encode(), value) for name in members) + b"}"
    if os.environ.get("DRILL") and not is_short:
        for name in members:
            yield from (b'{"%s": %s}' % (name.encode(), value) for value in VALUES)


def test_bodies_are_refused_or_understood(team, document):
    attacker, documented = Attacker(team.key), 0
    for route in ROUTES:
        known = operations(document, route)
        for method in route.methods:
            members = members_of(document, known.get(method, {}))
            documented += bool(members)
            if method == "GET" or (method == "DELETE" and not members):
                continue
            starts_runs = route.path.startswith("api/agents/")  # a member alone may be enough to start one
            for content in bodies(members, starts_runs):
                attacker.send((method, route.name), method, route.address(values_of(route, team.values)), content)
    assert documented > 60
    assert attacker.count > 2000


def test_queries_and_ids_are_refused_or_understood(team, document):
    attacker = Attacker(team.key)
    for route in ROUTES:
        if "GET" not in route.methods or route.name == STREAMED:
            continue
        values = values_of(route, team.values)
        address = route.address(values)
        operation = operations(document, route).get("GET", {})
        names = [item["name"] for item in operation.get("parameters", []) if item.get("in") == "query"]
        for value in QUERIES:
            attacker.send(
                ("GET", route.name, value), "GET", f"{address}?{'&'.join(f'{name}={value}' for name in names)}"
            )
            for name in names:
                attacker.send(("GET", route.name, name, value), "GET", f"{address}?{name}={value}")
        for value in PATHS:
            for name in route.parameters:
                attacker.send(("GET", route.name, value), "GET", route.address({**values, name: value}))
    assert attacker.count > 1000
