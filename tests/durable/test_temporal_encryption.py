"""Connections to a server of Temporal that are encrypted and ask for a certificate of the client."""

import datetime
import ipaddress
import socket
import ssl
import threading
from contextlib import closing, contextmanager, suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runs_app.engine.runners.temporal import TemporalRunner
from tests.durable.local_workers import TEMPORAL_NAMESPACE


@pytest.fixture
def certificate(tmp_path):
    """Return the paths of a certificate for this machine, signed by itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    encryption = serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    return paths


@contextmanager
def encrypted(address, certificate):
    """Yield the address of a proxy that decrypts connections of clients with this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate[0])
    context.load_cert_chain(*certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, args=(listener, context, address), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def accept(listener, context, address):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the listener is closed
            return
        with suppress(ssl.SSLError):
            forward(context.wrap_socket(connection, server_side=True), address)


def forward(client, address):
    host, port = address.split(":")
    server = socket.create_connection((host, int(port)))
    for source, target in ((client, server), (server, client)):
        threading.Thread(target=copy, args=(source, target), daemon=True).start()


def copy(source, target):
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@pytest.fixture
def runner(settings, temporal_server, certificate):
    settings.TEMPORAL_NAMESPACE = TEMPORAL_NAMESPACE
    with encrypted(temporal_server, certificate) as address:
        settings.TEMPORAL_ADDRESS = address
        runner = TemporalRunner()
        yield runner
        runner.loop.call_soon_threadsafe(runner.loop.stop)


def test_the_standard_variables_of_temporal_set_the_certificates(runner, certificate, monkeypatch):
    monkeypatch.setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", str(certificate[0]))
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(certificate[0]))
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", str(certificate[1]))

    client = runner.call(runner.connect()).result(20)

    assert client.namespace == TEMPORAL_NAMESPACE


@pytest.mark.parametrize("variables", [{}, {"TEMPORAL_TLS": "true"}], ids=["not encrypted", "unknown authority"])
def test_a_server_whose_certificate_is_not_trusted_is_refused(runner, variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(RuntimeError, match="Failed client connect"):
        runner.call(runner.connect()).result(20)
