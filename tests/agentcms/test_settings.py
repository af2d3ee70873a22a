"""Validation of settings at start-up."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentcms import environment
from agentcms.db.database_settings import database_config, limit_statements
from agentcms.server.processes import PROJECT
from tests.settings_file import evaluate_settings, settings_source


def manage(tmp_path, *arguments, **variables):
    return run_python(tmp_path, "manage.py", *arguments, **variables)


def run_python(tmp_path, *arguments, **variables):
    outside = {"DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE"}
    inherited = {name: value for name, value in os.environ.items() if name not in outside}
    environment = {**inherited, "DATA_DIR": str(tmp_path), **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=PROJECT, capture_output=True, text=True)


def assert_start_is_refused(done, *names):
    assert done.returncode == 1
    assert [name for name in names if name not in done.stderr] == []
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://root:hunter2@db/cms"),
        ("PORT", "99999"),
        ("WEB_WORKERS", "0"),
        ("WEB_STOP_TIMEOUT", "30s"),
    ],
)
def test_an_invalid_value_prints_one_sentence_with_its_variable(tmp_path, name, value):
    assert_start_is_refused(manage(tmp_path, "check", **{name: value}), name)


@pytest.mark.parametrize("command", [["manage.py", "check"], ["-m", "agentcms.server.run"]])
@pytest.mark.parametrize(
    ("folder", "reason"), [("notes.txt", "There is a file"), ("notes.txt/var", "Not a directory")]
)
def test_a_data_folder_that_cannot_be_created_is_reported_in_one_sentence(tmp_path, command, folder, reason):
    (tmp_path / "notes.txt").touch()

    assert_start_is_refused(
        run_python(tmp_path, *command, DATA_DIR=str(tmp_path / folder)), folder, reason, "DATA_DIR"
    )


@pytest.mark.parametrize("folder", ["notes.txt", "notes.txt/var"])
def test_a_data_folder_that_cannot_be_written_to_is_named_where_a_secret_is_set(tmp_path, folder):
    (tmp_path / "notes.txt").touch()
    variables = {"DATA_DIR": str(tmp_path / folder), "SECRET_KEY": "secret"}

    assert_start_is_refused(manage(tmp_path, "check", **variables), f"DATA_DIR is {tmp_path / folder}, which")


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
@pytest.mark.parametrize("server", ["db:port", "root:hunter2/x@db", "root:hunter2#x@db", "root:hunter2[@db"])
def test_a_url_without_a_readable_port_is_refused(monkeypatch, name, server):
    scheme = {"DATABASE_URL": "postgres", "REDIS_URL": "redis"}[name]
    monkeypatch.setenv(name, f"{scheme}://{server}/1")

    with pytest.raises(ImproperlyConfigured, match=f"^{name} must have a number as its port") as error:
        environment.read_server_url(name, scheme)

    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["", "postgres://u:p%23@db:5432/cms", "postgres://u@%2Frun%2Fpg/cms", "unix:///run/valkey.sock?db=1"]
)
def test_a_url_with_a_readable_port_or_none_is_accepted(monkeypatch, url):
    monkeypatch.setenv("SERVER_URL", url)

    assert environment.read_server_url("SERVER_URL", "postgres", "unix") == url


def test_all_values_that_the_checks_refuse_are_named_at_once(tmp_path):
    values = {
        "ALLOWED_HOSTS": "https://cms.example.org",
        "CSRF_TRUSTED_ORIGINS": "cms.example.org",
        "CORS_ORIGINS": "https://app.example.org/",
        "OPENAI_BASE_URL": "http://0177.0.0.2/v1",
        "MISTRAL_BASE_URL": "http://１２７.0.0.1/v1",
        "MEMORY_EMBEDDER": "multilingual",
    }

    assert_start_is_refused(manage(tmp_path, "check", **values), *values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "localhost:6379"),
        ("CELERY_BROKER_URL", "kafka://broker"),
        ("DATABASE_POOL_SIZE", "many"),
        ("JOB_LEASE", "0"),
        ("JOB_DAYS", "1000000"),
        ("AGENT_VERSION_LIMIT", "2"),
        ("RECALL_MOST", "1"),
        ("LOG_FORMAT", "xml"),
        ("METRICS_ALLOW", "10.0.0.300"),
        ("TRUSTED_PROXIES", "proxy.internal"),
        ("HTTPS", "maybe"),
    ],
)
def test_an_invalid_value_is_refused_with_its_variable(tmp_path, monkeypatch, name, value):
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv(name, value)

    with pytest.raises(ImproperlyConfigured, match=f"^{name} must "):
        evaluate_settings()


READ = sorted(set(re.findall(r'environment\.(\w+)\(\s*"([A-Z_]+)"', settings_source())))
BAD = {
    "read_int": ["many", "-1", "9999999999"],
    "read_bool": ["maybe"],
    "read_choice": ["xml"],
    "read_choice_or_path": ["xml"],
    "read_json_file": ["/nowhere.json"],
    "read_server_url": ["nowhere"],
    "read_url": ["nowhere"],
    "read_networks": ["10.0.0.300"],
    "read_rate": ["fast", "0/s"],
}
ANY_TEXT = {"read_text", "read_list", "load_or_create_secret", "read_address_file"}


def test_every_reader_of_a_setting_has_bad_values_to_test():
    assert {reader for reader, _ in READ} - ANY_TEXT == set(BAD)


@pytest.mark.parametrize(("reader", "name"), [pair for pair in READ if pair[0] in BAD])
def test_every_setting_rejects_an_invalid_value(tmp_path, monkeypatch, reader, name):
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for value in BAD[reader]:
        monkeypatch.setenv(name, value)
        with pytest.raises(ImproperlyConfigured, match=name):
            evaluate_settings()


def test_both_names_of_the_allowed_networks_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("OUTBOUND_NETWORKS", "10.0.0.0/8")
    monkeypatch.setenv("MODEL_NETWORKS", "127.0.0.0/8")

    networks = evaluate_settings()["OUTBOUND_NETWORKS"]

    assert [str(network) for network in networks] == ["10.0.0.0/8", "127.0.0.0/8"]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", []),
        ("?options=-c%20search_path%3Dcms%20-c%20lock_timeout%3D5s", ["-c search_path=cms", "-c lock_timeout=5s"]),
        ("?currentSchema=cms", ["-c search_path=cms"]),
    ],
)
def test_options_of_the_database_url_come_after_those_of_the_settings(query, options):
    config = database_config(
        f"postgres://cms@db/cms{query}", Path(), pool_size=1, use_prepared_statements=True, lock_timeout=20
    )
    limit_statements(config, 60)

    own = ["-c lock_timeout=20s", "-c idle_in_transaction_session_timeout=0s"]
    assert config["OPTIONS"]["options"] == " ".join([*own, *options, "-c statement_timeout=60s"])


def test_the_documented_production_settings_pass_the_deployment_check(tmp_path):
    done = manage(
        tmp_path,
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        DATABASE_URL="postgres://agentcms:secret@127.0.0.1/agentcms",
        REDIS_URL="redis://127.0.0.1:6379/0",
        ALLOWED_HOSTS="cms.example.org",
        CSRF_TRUSTED_ORIGINS="https://cms.example.org",
        HTTPS="yes",
        TRUSTED_PROXIES="127.0.0.1",
    )

    assert done.returncode == 0, done.stderr


def test_a_pool_smaller_than_the_threads_is_a_warning(tmp_path):
    done = manage(
        tmp_path, "check", "--deploy", DATABASE_URL="postgres://cms@db/cms", DATABASE_POOL_SIZE="4", WEB_THREADS="16"
    )

    assert "requests will wait for a connection" in done.stderr


@pytest.mark.parametrize(("prepare", "disabled"), [("yes", "False"), ("no", "True")])
def test_server_side_cursors_are_disabled_without_prepared_statements(tmp_path, prepare, disabled):
    done = manage(tmp_path, "diffsettings", DATABASE_URL="postgres://cms@db/cms", DATABASE_PREPARE=prepare)

    assert f"'DISABLE_SERVER_SIDE_CURSORS': {disabled}" in done.stdout
