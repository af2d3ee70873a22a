"""Throttling of requests and wrong keys, and requests of other origins."""

import time

import pytest
from django.core.cache import cache
from django.test import Client
from redis.exceptions import RedisError

from access_app.throttling.api import calls
from agentcms.rate import Rate
from tests.api_client import AGENTS, Caller
from tests.factories import api_key, member

LONG = 10**9  # seconds; no window of this length ends before 2033


def test_a_key_over_its_rate_is_throttled_and_other_keys_are_not(api, editor, settings):
    settings.API_THROTTLE = Rate(3, LONG)

    statuses = [api.get(AGENTS).status_code for _ in range(5)]
    refused = api.get(AGENTS)

    assert statuses == [200, 200, 200, 429, 429]
    assert abs(int(refused.headers["Retry-After"]) - (LONG - time.time() % LONG)) < 60
    assert refused.body["code"] == "too_many_requests"
    assert editor.get(AGENTS).status_code == 200


def test_the_rate_off_disables_throttling(api, settings):
    settings.API_THROTTLE = None

    assert {api.get(AGENTS).status_code for _ in range(5)} == {200}
    assert {Caller("wrong").get(AGENTS).status_code for _ in range(70)} == {401}


def test_wrong_keys_are_401_before_429_and_never_block_a_valid_key(api, settings):
    settings.API_WRONG_KEYS = Rate(3, LONG)

    statuses = [Caller(f"acms_{n:08}_x").get(AGENTS).status_code for n in range(5)]

    assert statuses == [401, 401, 401, 429, 429]
    assert api.get(AGENTS).status_code == 200
    assert Caller(api_key(member())).get(AGENTS).status_code == 200


def test_wrong_keys_from_one_ipv6_network_count_together(db, settings):
    settings.API_WRONG_KEYS = Rate(3, LONG)

    def status(address):
        return Client(REMOTE_ADDR=address, headers={"Authorization": "Bearer wrong"}).get(AGENTS).status_code

    assert [status(f"2001:db8::{n:x}") for n in range(5)] == [401, 401, 401, 429, 429]
    assert status("2001:db8:0:1::1") == 401


def test_requests_are_counted_over_all_processes(settings):
    settings.API_THROTTLE = Rate(10, LONG)

    for _ in range(8):
        assert calls.hit("somebody") == 0
        calls.windows.clear()  # as in a new process

    assert [bool(calls.hit("somebody")) for _ in range(4)] == [False, False, True, True]


def test_a_new_window_begins_without_the_calls_of_the_last_one(settings):
    settings.API_THROTTLE = Rate(2, LONG)
    assert [bool(calls.hit("somebody")) for _ in range(3)] == [False, False, True]

    calls.windows["somebody"].ends_at = time.time()
    cache.clear()

    assert calls.hit("somebody") == 0


def test_a_clock_that_is_set_back_ends_the_window(settings, monkeypatch):
    settings.API_THROTTLE = Rate(2, 60)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert [bool(calls.hit("somebody")) for _ in range(3)] == [False, False, True]

    monkeypatch.setattr(time, "time", lambda: now)

    assert [bool(calls.hit("somebody")) for _ in range(3)] == [False, False, True]
    assert calls.hit("somebody") <= 61


def test_requests_pass_without_the_cache(api, settings, monkeypatch):
    settings.API_THROTTLE = Rate(1000, LONG)

    def away(*args, **kwargs):
        raise RedisError

    monkeypatch.setattr(cache, "add", away)
    monkeypatch.setattr(cache, "incr", away)

    assert {api.get(AGENTS).status_code for _ in range(60)} == {200}


@pytest.mark.parametrize(
    ("text", "rate"), [("200/s", (200, 1)), ("5/min", (5, 60)), ("1/10s", (1, 10)), ("off", None)]
)
def test_a_rate_is_a_number_of_calls_per_period(text, rate):
    assert Rate.parse(text) == rate


@pytest.mark.parametrize("text", ["", "0/s", "x", "5", "5/week", "-1/s"])
def test_an_invalid_rate_is_an_error(text):
    with pytest.raises(ValueError):
        Rate.parse(text)


def test_an_allowed_origin_may_call_the_api(api, settings):
    settings.CORS_ORIGINS = ["https://app.example"]

    preflight = api.client.options(
        AGENTS, headers={"Origin": "https://app.example", "Access-Control-Request-Method": "PATCH"}
    )
    answer = api.get(AGENTS, Origin="https://app.example")
    other = api.get(AGENTS, Origin="https://evil.example")

    assert (preflight.status_code, preflight.headers["Access-Control-Allow-Origin"]) == (204, "https://app.example")
    assert {"Authorization", "Last-Event-ID"} <= {*preflight.headers["Access-Control-Allow-Headers"].split(", ")}
    assert {"ETag", "X-Run-ID"} <= {*answer.headers["Access-Control-Expose-Headers"].split(", ")}
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Access-Control-Allow-Origin" not in other.headers
    assert "Origin" in other.headers["Vary"]


def test_no_origin_is_allowed_by_default(api):
    assert "Access-Control-Allow-Origin" not in api.get(AGENTS, Origin="https://app.example").headers
