"""The circuit breaker for servers that do not respond."""

from agentcms.backends.circuit_breaker import CircuitBreaker


def test_calls_are_allowed_while_the_server_responds():
    circuit = CircuitBreaker(retry_after=60)
    circuit.record_success()

    assert [circuit.allows_call() for _ in range(3)] == [True, True, True]


def test_a_failure_stops_calls():
    circuit = CircuitBreaker(retry_after=60)
    circuit.record_failure()

    assert circuit.is_open
    assert not circuit.allows_call()


def test_after_the_pause_one_caller_tries_again(monkeypatch):
    circuit = CircuitBreaker(retry_after=60)
    circuit.record_failure()
    monkeypatch.setattr("agentcms.backends.circuit_breaker.monotonic", lambda: circuit._retry_at + 1)

    assert not circuit.is_open
    assert circuit.allows_call()

    monkeypatch.undo()
    assert not circuit.allows_call()


def test_a_success_allows_calls_again():
    circuit = CircuitBreaker(retry_after=60)
    circuit.record_failure()

    circuit.record_success()

    assert circuit.allows_call()
