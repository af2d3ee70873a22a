"""Fixtures of tests of traces."""

import pytest

from agentcms.tracing import spans, tracer_provider
from runs_app.engine.engine import find_engine
from tests.collector import collecting
from tests.served import wait_until


@pytest.fixture
def collector(settings, monkeypatch):
    """Switch tracing on, and return the receiver of the spans."""
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")  # only `flush` sends
        settings.TRACES_ENDPOINT = collector.url
        yield collector
        spans.shut_down()


def wait_for_spans_of_runs():
    """Wait for the tasks of all runs, whose spans end after their rows."""
    engine = find_engine()
    if engine is not None:
        wait_until(lambda: not engine.run_tasks, 30, "the end of all tasks")


@pytest.fixture
def flushed(collector):
    """Return a function that sends the ended spans and returns the receiver."""

    def flush():
        wait_for_spans_of_runs()
        tracer_provider.flush()
        return collector

    return flush
