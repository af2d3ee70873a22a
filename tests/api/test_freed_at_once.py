"""An answered call leaves nothing in a circle: what only the garbage collector finds makes everybody wait for it."""

import gc
import json

import pytest
from django.test import RequestFactory
from django.urls import resolve
from rest_framework.request import Request
from rest_framework.views import APIView

from tests.api.calls import AGENTS, agent_path

CALLS = {
    "read": ("GET", agent_path("a"), None),
    "list": ("GET", AGENTS, None),
    "edit": ("PATCH", agent_path("a"), {"instructions": "New"}),
    "history": ("GET", agent_path("a", "versions"), None),
    "compare": ("GET", f"{agent_path('a', 'versions', 'compare')}?from=live&to=head", None),
}


@pytest.mark.parametrize("call", CALLS)
def test_views_and_requests_do_not_wait_for_the_collector(api, call):
    api.create("a")
    method, path, body = CALLS[call]
    found = resolve(path.partition("?")[0])
    headers = {"Authorization": api.authorization}

    gc.collect()
    gc.disable()
    try:
        request = RequestFactory().generic(method, path, json.dumps(body or {}), "application/json", headers=headers)
        status = found.func(request, *found.args, **found.kwargs).status_code
        left = [each for each in gc.get_objects() if isinstance(each, APIView | Request)]
    finally:
        gc.enable()

    assert (status, left) == (200, [])
