"""The policy for addresses that users name, and connections that keep to it."""

import asyncio
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from socket import AF_INET, EAI_NONAME, SOCK_STREAM, gaierror

import httpx2
import pytest

from agentcms.outbound.addresses import AddressRefused, is_allowed_address, validate_url
from agentcms.outbound.transport import CheckedTransport
from runs_app.exceptions import find_run_error

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "::1",
    "::",
    "fe80::1",
    "fec0::1",
    "feff:ffff::1",
    "fd00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused(address):
    assert not is_allowed_address(ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_a_public_address_is_allowed(address):
    assert is_allowed_address(ip_address(address))


def test_an_address_in_an_allowed_network_is_allowed(settings):
    settings.OUTBOUND_NETWORKS = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]

    assert is_allowed_address(ip_address("10.1.2.3"))
    assert is_allowed_address(ip_address("::ffff:10.1.2.3"))
    assert is_allowed_address(ip_address("fd00::7"))
    assert not is_allowed_address(ip_address("192.168.1.1"))


@pytest.mark.parametrize("url", ["ftp://models.example.org", "file:///etc/passwd", "models.example.org", "http://"])
def test_only_http_urls_are_allowed(url):
    with pytest.raises(AddressRefused, match="must begin with http"):
        validate_url(url)


@pytest.mark.parametrize("url", ["http://[::1", "http://a:b", "http://a.example:65536"])
def test_an_invalid_port_or_address_is_named(url):
    with pytest.raises(AddressRefused, match="invalid port or address"):
        validate_url(url)


def test_a_url_with_a_password_is_refused():
    with pytest.raises(AddressRefused, match="Remove the user name and password") as refused:
        validate_url("https://ada:sesame@models.example.org")

    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("end", [" x", "\u202egpj.exe", "a\u200bb", "a\x7f", "?q=\u2066"])
def test_a_url_that_looks_like_another_is_refused(end):
    with pytest.raises(AddressRefused, match="invisible character"):
        validate_url(f"https://models.example.org/{end}")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://[::1]/v1", "https://169.254.169.254/latest"])
def test_a_private_ip_address_is_refused_when_stored(url):
    with pytest.raises(AddressRefused, match="OUTBOUND_NETWORKS"):
        validate_url(url)


NO_HOSTS = [
    "0177.0.0.2",
    "１２７.0.0.1",
    "127.1",
    "0x7f.1",
    "2130706433",
    "a.example.0x1",
    "1.2.3.4.",
    "%31%32%37.0.0.1",
    "a b.example",
    "a..example",
    "-a.example",
    "*.example.org",
    "ⓔxample.org",
    f"{'a' * 64}.example",
    ".".join(["a" * 60] * 5),
]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_host_that_the_client_does_not_accept_is_refused(host):
    with pytest.raises(AddressRefused, match="is not a host of a URL"):
        validate_url(f"http://{host}:8000/v1")


@pytest.mark.parametrize(
    "host", ["models.example.org", "models.example.org.", "model_server", "bücher.example", "xn--bcher-kva.example"]
)
def test_a_host_name_is_accepted(host):
    validate_url(f"http://{host}:8000/v1")


@pytest.fixture
def echo_server():
    """Start a local server that returns the name it was called by."""

    class Named(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.headers["Host"].encode())

        def log_message(self, *args):
            """Suppress the log of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Named) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def get(url, resolved=None):
    """Send a request over the checked transport. `resolved` has the addresses of its host."""

    async def ask():
        async with httpx2.AsyncClient(transport=CheckedTransport()) as client:
            return await client.get(url)

    with pytest.MonkeyPatch.context() as patch:
        if resolved is not None:
            patch.setattr(socket, "getaddrinfo", resolver(resolved))
        return asyncio.run(ask())


def resolver(answers):
    def getaddrinfo(host, port, **_):
        if not answers:
            raise gaierror(EAI_NONAME, "Name or service not known")
        return [(AF_INET, SOCK_STREAM, 6, "", (address, port)) for address in answers]

    return getaddrinfo


def test_a_name_with_a_private_address_is_refused_on_connect(echo_server):
    with pytest.raises(AddressRefused, match="'localhost' is not allowed"):
        get(f"http://localhost:{echo_server}/")


def test_one_private_address_of_several_is_refused_and_only_logged(caplog):
    with pytest.raises(AddressRefused) as error:
        get("http://models.example.org/", resolved=["1.1.1.1", "127.0.0.1"])

    # Users see the error. They must not learn addresses of the network.
    assert error.value.messages == [
        "'models.example.org' is not allowed: it is a private address or a name of one. "
        "Add its network to OUTBOUND_NETWORKS to allow it."
    ]
    assert "'models.example.org' was refused: 127.0.0.1 is a private address" in caplog.text


def test_the_connection_uses_the_checked_address(echo_server, settings):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    answer = get(f"http://models.example.org:{echo_server}/", resolved=["127.0.0.1"])

    assert answer.text == f"models.example.org:{echo_server}"


def test_the_next_address_is_tried_after_a_failure(echo_server, settings):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]

    answer = get(f"http://models.example.org:{echo_server}/", resolved=["127.0.0.2", "127.0.0.1"])

    assert answer.status_code == 200


def test_each_event_loop_has_its_own_connections(echo_server, settings):
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
    transport = CheckedTransport()

    async def ask():
        request = httpx2.Request("GET", f"http://127.0.0.1:{echo_server}/")
        return (await transport.handle_async_request(request)).status_code

    assert [asyncio.run(ask()) for _ in range(3)] == [200, 200, 200]
    assert len(transport._pools) == 1


def test_an_unknown_host_is_a_connection_error():
    with pytest.raises(httpx2.ConnectError):
        get("http://models.invalid/", resolved=[])


def test_the_cause_of_a_wrapped_error_is_found():
    fault = AddressRefused("'x' is not allowed.")
    try:
        try:
            raise fault
        except AddressRefused as error:
            raise ConnectionError("Connection error.") from error
    except ConnectionError as error:
        outer = error

    assert find_run_error(outer) is fault
    assert find_run_error(ValueError()) is None


def test_a_host_of_60_000_accents_is_refused_at_once():
    start = time.thread_time()

    with pytest.raises(AddressRefused, match="longer than 4,000 characters"):
        validate_url("http://a" + "\u0301\u0327" * 30_000)

    assert time.thread_time() - start < 0.5
