"""The trace context goes to model providers and MCP servers of the operator, and to no others."""

import asyncio
from ipaddress import ip_network

import pytest

from agentcms.tracing import spans
from agentcms.tracing.propagation import is_own_server
from runs_app.providers.models import http_client
from tests.tools_app.conftest import http_url  # noqa: F401  a fixture
from tools_app.mcp.cached_servers import server_from_row
from tools_app.mcp.calls import call_mcp_tool
from tools_app.mcp.headers import CallerNames
from tools_app.mcp.sessions import session_pool
from tools_app.models import McpServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def loopback(settings):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]


def received_by_provider(url):
    """Send a request as models do, in a span. Return the traceparent of the span and the one that was received."""

    async def send():
        with spans.span("chat"):
            response = await http_client().post(url, content=b"", headers={"traceparent": "00-of-somebody"})
            await response.aread()
            return spans.current_traceparent()

    return asyncio.run(send())


@pytest.mark.parametrize(("hosts", "is_sent"), [({"127.0.0.1"}, True), ({"models.internal"}, False), (set(), False)])
def test_only_own_providers_get_it(collector, settings, hosts, is_sent):
    settings.TRACE_OWN_HOSTS = hosts

    own = received_by_provider(collector.url)

    assert collector.headers[-1]["traceparent"] == (own if is_sent else None)


def test_a_host_may_be_named_with_its_port(collector, settings):
    port = collector.url.rpartition(":")[2]
    settings.TRACE_OWN_HOSTS = {f"127.0.0.1:{port}"}
    own = received_by_provider(collector.url)
    settings.TRACE_OWN_HOSTS = {"127.0.0.1:1"}
    received_by_provider(collector.url)

    assert [headers["traceparent"] for headers in collector.headers[-2:]] == [own, None]


@pytest.mark.parametrize(
    ("url", "host"), [("https://a.example/x", "a.example:443"), ("http://b.example", "b.example:80")]
)
def test_a_port_may_be_the_default_one_of_the_scheme(settings, url, host):
    settings.TRACE_OWN_HOSTS = {host}

    assert is_own_server(url)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("[::1]:8080", True), ("[::1]", True), ("::1", True), ("[::1]:80", False), ("[::2]:8080", False)],
)
def test_an_ipv6_address_is_in_brackets_before_its_port(settings, host, is_own):
    settings.TRACE_OWN_HOSTS = {host}

    assert is_own_server("http://[::1]:8080/mcp") is is_own


def test_nothing_is_sent_while_tracing_is_off(collector, settings):
    settings.TRACES_ENDPOINT, settings.TRACE_OWN_HOSTS = "", {"127.0.0.1"}

    received_by_provider(collector.url)

    assert collector.headers[-1]["traceparent"] is None


@pytest.mark.parametrize(("hosts", "is_sent"), [({"127.0.0.1"}, True), (set(), False)])
def test_only_own_mcp_servers_get_it(collector, settings, http_url, hosts, is_sent):  # noqa: F811
    settings.TRACE_OWN_HOSTS = hosts
    server = server_from_row(McpServer.objects.create(key="office", title="Office", url=http_url))

    async def call():
        with spans.span("execute_tool trace"):
            try:
                return spans.current_traceparent(), await call_mcp_tool(server, "trace", {}, CallerNames())
            finally:
                await session_pool().close_all()

    own, received = asyncio.run(call())

    assert received.split("-")[1:2] == (own.split("-")[1:2] if is_sent else [])
