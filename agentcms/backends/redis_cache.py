"""Django's Redis cache with a circuit breaker: a server that hangs delays one call in ten seconds, not each."""

from __future__ import annotations

from typing import Any

import redis
from django.core.cache.backends import redis as django_redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from agentcms.backends.circuit_breaker import CircuitBreaker

cache_circuit = CircuitBreaker(retry_after=10)


class GuardedRedis(redis.Redis):
    """A client whose commands raise ConnectionError at once while the circuit is open."""

    def execute_command(self, *args: Any, **options: Any) -> object:
        if not cache_circuit.allows_call():
            raise redis.ConnectionError("The cache did not respond a few seconds ago.")
        try:
            result = super().execute_command(*args, **options)
        except (redis.ConnectionError, redis.TimeoutError):
            cache_circuit.record_failure()
            raise
        cache_circuit.record_success()
        return result


class RedisCacheClient(django_redis.RedisCacheClient):
    """The client of the cache. It does not retry: the caller goes on without the cache."""

    def __init__(self, servers: Any, **options: Any) -> None:
        super().__init__(servers, retry=Retry(NoBackoff(), 0), **options)
        # Django has no option for the class of the client.
        self._client = GuardedRedis


class RedisCache(django_redis.RedisCache):
    """The cache backend."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = RedisCacheClient
