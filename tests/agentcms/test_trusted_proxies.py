"""The client address behind trusted and unknown proxies."""

from importlib import reload
from ipaddress import ip_network

import pytest

from agentcms import wsgi

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("proxy", "forwarded_for", "caller"),
    [
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.1.2.3", "203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("198.51.100.7", "203.0.113.9", "198.51.100.7"),
        ("::ffff:127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("::ffff:198.51.100.7", "203.0.113.9", "198.51.100.7"),
    ],
)
def test_only_a_trusted_proxy_sets_the_client_address(rf, settings, proxy, forwarded_for, caller):
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.1"), ip_network("10.0.0.0/8")]
    environ = rf.get("/healthz", REMOTE_ADDR=proxy, HTTP_X_FORWARDED_FOR=forwarded_for).environ

    reload(wsgi).application(environ, lambda status, headers: None)

    assert environ["REMOTE_ADDR"] == caller
