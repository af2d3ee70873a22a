"""Views and requests, which must not depend on the garbage collector."""

import gc
import json

import pytest
from django.test import RequestFactory
from django.urls import resolve
from rest_framework.request import Request
from rest_framework.views import APIView

from tests.api_client import AGENTS, agent_path

CALLS = {
    "read": (200, "GET", agent_path("a"), None),
    "list": (200, "GET", AGENTS, None),
    "edit": (200, "PATCH", agent_path("a"), {"instructions": "New"}),
    "history": (200, "GET", agent_path("a", "versions"), None),
    "compare": (200, "GET", f"{agent_path('a', 'versions', 'compare')}?from=live&to=head", None),
    "refused edit": (400, "PATCH", agent_path("a"), {"name": 5}),
    "missing agent": (404, "GET", agent_path("nowhere"), None),
    "missing method": (405, "DELETE", AGENTS, None),
}


@pytest.mark.parametrize("call", CALLS)
def test_views_and_requests_leave_no_reference_cycles(api, call):
    api.create("a")
    expected, method, path, body = CALLS[call]
    match = resolve(path.partition("?")[0])
    headers = {"Authorization": api.authorization}

    gc.collect()
    before = find_instances()  # instances of other tests
    gc.disable()
    try:
        request = RequestFactory().generic(method, path, json.dumps(body or {}), "application/json", headers=headers)
        status = match.func(request, *match.args, **match.kwargs).status_code
        left = [instance for instance in find_instances() if all(instance is not other for other in before)]
    finally:
        gc.enable()

    assert (status, left) == (expected, [])


def find_instances():
    # isinstance() would evaluate lazy proxies.
    return [instance for instance in gc.get_objects() if issubclass(type(instance), APIView | Request)]
