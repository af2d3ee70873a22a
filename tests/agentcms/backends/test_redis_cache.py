"""The cache while its server responds, and while it hangs."""

import socket
import time

import pytest
from redis.exceptions import RedisError

from agentcms.backends import redis_cache
from agentcms.backends.redis_cache import RedisCache

OPTIONS = {"OPTIONS": {"socket_timeout": 0.3, "socket_connect_timeout": 0.3}}


@pytest.fixture(autouse=True)
def closed_circuit():
    yield
    redis_cache.cache_circuit.record_success()


def test_the_cache_stores_counts_and_values(valkey):
    cache = RedisCache(valkey, OPTIONS)

    assert cache.add("count", 1, 60)
    assert cache.incr("count", 2) == 3
    cache.set("value", {"a": 1}, 60)
    assert cache.get("value") == {"a": 1}


def test_a_server_that_hangs_delays_one_call():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cache = RedisCache(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", OPTIONS)
        seconds = []
        for _ in range(20):
            began = time.monotonic()
            with pytest.raises(RedisError):
                cache.add("count", 1, 60)
            seconds.append(time.monotonic() - began)

    assert seconds[0] >= 0.3
    assert sum(seconds[1:]) < 3  # without the circuit breaker six seconds


def test_the_cache_is_used_again_after_the_pause(valkey, monkeypatch):
    redis_cache.cache_circuit.record_failure()
    cache = RedisCache(valkey, OPTIONS)
    with pytest.raises(RedisError):
        cache.get("value")

    retry_at = redis_cache.cache_circuit._retry_at
    monkeypatch.setattr("agentcms.backends.circuit_breaker.monotonic", lambda: retry_at)

    cache.set("value", 7, 60)
    assert cache.get("value") == 7
