"""The settings of traces: what switches them on, what the checks report, and the link to a trace."""

import pytest

from agentcms import environment
from agentcms.checks.variables import check_traces
from runs_app.models import AgentRun
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.factories import RunFactory

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://one:4318"}, "http://one:4318"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://two/v1/traces"}, "http://two/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://one:4318", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://one:4318", "OTEL_TRACES_EXPORTER": "none"}, ""),
    ],
)
def test_an_endpoint_switches_traces_on(variables, endpoint, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert environment.read_traces_endpoint() == endpoint


def test_the_checks_name_settings_that_cannot_work(settings):
    settings.TRACES_ENDPOINT = "http://user:secret@collector:4318"
    settings.TRACE_URL_TEMPLATE = "https://traces.example.org/"

    assert [error.id for error in check_traces(None)] == ["agentcms.E014", "agentcms.E015"]


def test_a_collector_in_a_private_network_is_allowed(settings):
    settings.TRACES_ENDPOINT = "http://127.0.0.1:4318"

    assert check_traces(None) == []


def test_variables_that_opentelemetry_refuses_are_named(settings, monkeypatch):
    """Otherwise each request would fail."""
    settings.TRACES_ENDPOINT = "http://127.0.0.1:4318"
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")

    (error,) = check_traces(None)

    assert error.msg.startswith("OpenTelemetry refuses its variables: max_export_batch_size must be less")
    assert "OTEL_BSP_MAX_QUEUE_SIZE" in error.hint


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_a_protocol_in_which_nothing_is_exported_is_named(name, settings, monkeypatch):
    """Otherwise no trace would reach a collector that expects this protocol."""
    settings.TRACES_ENDPOINT = "http://127.0.0.1:4317"
    monkeypatch.setenv(name, "grpc")

    (error,) = check_traces(None)

    assert error.msg == "OTEL_EXPORTER_OTLP_PROTOCOL: traces are not exported with 'grpc'."
    assert "http/protobuf" in error.hint


@pytest.mark.parametrize(("flags", "is_linked"), [("01", True), ("00", False)])
def test_the_page_of_a_run_links_to_its_trace_if_it_was_sampled(db, settings, flags, is_linked):
    settings.TRACE_URL_TEMPLATE = "https://traces.example.org/{trace_id}?from=cms"
    run = RunFactory(agent=AgentFactory(), traceparent=TRACEPARENT[:-2] + flags)

    html = browser(member("publisher")).get(f"/runs/{run.pk}").content.decode()

    assert ("https://traces.example.org/0af7651916cd43dd8448eb211c80319c?from=cms" in html) is is_linked


def test_somebody_who_sees_no_details_sees_no_link(db, settings):
    settings.TRACE_URL_TEMPLATE = "https://traces.example.org/{trace_id}"
    former = member("editor")
    run = RunFactory(agent=AgentFactory(owner_id="other"), requested_by=former, traceparent=TRACEPARENT)

    assert "traces.example.org" not in browser(former).get(f"/runs/{run.pk}").content.decode()
    assert AgentRun.objects.for_user(former).exists()
