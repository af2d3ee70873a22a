"""A collector that is gone delays nothing, and lost spans are counted."""

import subprocess
import sys
import time

import pytest

from agentcms.server.processes import PROJECT
from agentcms.tracing import spans, tracer_provider
from agentcms.tracing.drop_signal import spans_dropped
from tests.conftest import DRILL
from tests.served import free_port, wait_until

MAX_STOP = 1.05 if DRILL else 5.0  # seconds; 1 s of waiting, and in the small form any speed of the machine


@pytest.fixture
def dropped():
    """Return the reasons of the spans that were dropped, with their number."""
    counts = {}

    def count_dropped(count, reason, **kwargs):
        counts[reason] = counts.get(reason, 0) + count

    spans_dropped.connect(count_dropped)
    yield counts
    spans_dropped.disconnect(count_dropped)


@pytest.fixture
def gone_collector(settings, monkeypatch):
    """Switch tracing on with an address at which nobody listens."""
    settings.TRACES_ENDPOINT = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", settings.TRACES_ENDPOINT)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    yield
    spans.shut_down()


def end_spans(number):
    for _ in range(number):
        with spans.span("work"):
            pass


def test_a_full_queue_drops_and_counts_spans(gone_collector, dropped, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "5")
    tracer_provider.get_tracer_provider()
    with tracer_provider._processor._batch_processor._export_lock:  # the thread that exports waits
        end_spans(8)

    assert dropped["queue_full"] == 3


def test_the_queue_holds_2048_spans(gone_collector):
    tracer_provider.get_tracer_provider()

    assert tracer_provider._processor._batch_processor._queue.maxlen == 2048


def test_the_stop_waits_a_second_at_most_and_counts_what_is_lost(gone_collector, dropped):
    end_spans(3)
    started = time.monotonic()

    spans.shut_down()

    assert time.monotonic() - started < MAX_STOP
    wait_until(lambda: sum(dropped.values()) == 3, 10, "the count of the lost spans")


def test_no_part_of_opentelemetry_is_imported_while_tracing_is_off():
    code = (
        "import sys; import agentcms.wsgi; from agentcms.tracing import spans, requests\n"
        "with spans.span('work'): pass\n"
        "spans.traceparent_to_store('work'); spans.shut_down()\n"
        "import runs_app.engine.execution.execute\n"
        "from runs_app.tracing import run_spans; assert [*run_spans.instrumentation()] == []\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.exporter', 'agentcms.tracing.pr'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60)

    assert done.stdout.strip() == "[]", done.stderr
