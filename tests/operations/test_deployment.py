"""The files for deployment: start script, systemd and Compose."""

import getpass
import os
import re
import subprocess
import sys

import pytest

from agentcms.checks.production import production_errors
from agentcms.server.processes import PROJECT

DEPLOY = PROJECT / "deploy"
START = DEPLOY / "start"
PARTS = set(re.findall(r"^    (\w+)\)$", START.read_text(), re.MULTILINE))
NEEDED = {
    "DATABASE_URL": "postgres://cms@db/cms",
    "ALLOWED_HOSTS": "cms.example.org",
    "SECRET_KEY": "x" * 50,  # only its absence is tested
    "REDIS_URL": "redis://broker",
}
SECRET_KEY = "a-secret-that-is-as-long-and-as-random-as-one-should-be"


def example() -> dict[str, str]:
    """Return the example environment with a secret key."""
    lines = (DEPLOY / "agentcms.env.example").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {**variables, "SECRET_KEY": SECRET_KEY}


def test_systemd_and_compose_start_every_part_and_nothing_else():
    units = "\n".join(path.read_text() for path in (DEPLOY / "systemd").iterdir())
    services = (DEPLOY / "compose.yaml").read_text()

    assert sorted(PARTS) == ["beat", "prepare", "web", "worker"]
    assert set(re.findall(r"^ExecStart=/srv/agentcms/deploy/start (\w+)$", units, re.MULTILINE)) == PARTS
    assert set(re.findall(r"^    command: \[\"(\w+)\"\]$", services, re.MULTILINE)) == PARTS
    assert os.access(START, os.X_OK)


@pytest.mark.parametrize("part", ["web", "worker"])
def test_systemd_asks_only_the_main_process_to_stop_where_it_has_others(part):
    (unit,) = (DEPLOY / "systemd").glob(f"agentcms-{part}*.service")

    assert "KillMode=mixed" in unit.read_text().splitlines()


@pytest.mark.parametrize("missing", NEEDED)
def test_a_missing_variable_is_named(missing):
    environment = {name: value for name, value in NEEDED.items() if name != missing}

    done = subprocess.run(
        [START, "web"], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{missing} is not set. docs/operations.md lists the variables that production needs.\n"


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the start script with a program in place of Python that prints its arguments."""
    variables = {"PATH": os.environ["PATH"], **NEEDED, "PYTHON": "echo", **environment}
    return subprocess.run([START, *arguments], env=variables, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "queues"),
    [([], "celery,runs"), (["runs"], "runs"), (["jobs"], "celery")],
    ids=["all", "runs", "jobs"],
)
def test_a_worker_takes_the_queues_that_its_argument_names(arguments, queues):
    done = start("worker", *arguments)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"-m agentcms.server.worker --without-beat --queues {queues} --threads 4\n"


def test_the_scheduler_writes_no_banner_into_its_log():
    assert start("beat").stdout == "-m celery --quiet -A agentcms beat --pidfile= --loglevel INFO\n"


VARIABLES = "# a comment\n\nSTORAGE_URL=s3://bucket?endpoint=https://s3&region=$A\nQUOTED='one two'\nLAST=3"


def as_service(tmp_path, *arguments: str, content: str = VARIABLES) -> subprocess.CompletedProcess[str]:
    """Run a command with the variables of a file, as this user."""
    file = tmp_path / "agentcms.env"
    file.write_bytes(content.encode())
    variables = {"PATH": os.environ["PATH"], "ENV_FILE": str(file), "RUN_AS": getpass.getuser()}
    return subprocess.run([DEPLOY / "as-service", *arguments], env=variables, cwd="/", capture_output=True, text=True)


def test_a_command_gets_the_variables_of_the_services(tmp_path):
    done = as_service(tmp_path, "sh", "-c", 'pwd; echo "$STORAGE_URL"; echo "$QUOTED"; echo "$LAST"')

    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(PROJECT), "s3://bucket?endpoint=https://s3&region=$A", "one two", "3"]


def test_white_space_around_variables_is_ignored_as_by_systemd(tmp_path):
    content = "  FIRST=1 \r\n \t\nSECOND = ' 2 ' \n  # THIRD=3\n"

    done = as_service(tmp_path, "sh", "-c", 'echo "$FIRST,$SECOND,$THIRD."', content=content)

    assert (done.stdout, done.stderr) == ("1, 2 ,.\n", "")


@pytest.mark.parametrize("line", ["export SECRET_KEY=hunter2", "hunter2", "=hunter2", "1ST=hunter2"])
def test_a_line_that_sets_no_variable_is_named_without_its_text(tmp_path, line):
    done = as_service(tmp_path, "sh", "-c", 'echo "$LAST"', content=f"LAST=3\n{line}\n")

    assert done.stdout == "3\n"
    assert done.stderr == f"{tmp_path}/agentcms.env, line 2: ignored, as by systemd. Write NAME=value.\n"


def test_a_command_of_the_services_must_be_given(tmp_path):
    done = as_service(tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: deploy/as-service COMMAND")


def test_the_secrets_of_compose_reach_neither_images_nor_the_repository():
    assert "**/.env" in (PROJECT / ".dockerignore").read_text().splitlines()
    assert ".env" in (PROJECT / ".gitignore").read_text().splitlines()


def test_unknown_queues_of_a_worker_are_refused():
    done = start("worker", "mail")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Usage: deploy/start worker [runs|jobs]\n"


@pytest.mark.parametrize("name", ["PORT", "WEB_WORKERS", "WEB_THREADS", "RUN_STREAMS", "WORKER_THREADS"])
def test_an_invalid_number_is_named(name):
    environment = {"PATH": os.environ["PATH"], **NEEDED, name: "many"}

    done = subprocess.run([START, "web"], env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{name} must be a whole number, not 'many'.\n"


@pytest.mark.parametrize("part", sorted(PARTS))
def test_settings_that_are_not_safe_are_named_together(part, tmp_path):
    unsafe = {**NEEDED, "DEBUG": "yes", "SECRET_KEY": "x", "ALLOWED_HOSTS": "cms.example.org,*"}
    environment = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "DATA_DIR": str(tmp_path), **unsafe}

    done = subprocess.run([START, part], env=environment, capture_output=True, text=True, timeout=60)

    assert done.returncode == 1
    for sentence in ("DEBUG is on", "SECRET_KEY is weak", "ALLOWED_HOSTS contains '*'"):
        assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("secret", ["x", "x" * 50, "change-me", "ab" * 20, f"django-insecure-{SECRET_KEY}"])
def test_a_weak_secret_key_is_refused(secret, settings):
    settings.SECRET_KEY = secret

    assert [error.id for error in production_errors()] == ["agentcms.E007"]


@pytest.mark.parametrize("secret", [SECRET_KEY, "d1f0a6c2b7e84935" * 2])
def test_a_random_secret_key_is_accepted(secret, settings):
    settings.SECRET_KEY = secret

    assert list(production_errors()) == []


def test_the_preparation_says_that_the_database_cannot_be_reached(tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/no/file",
    }

    done = subprocess.run(
        [sys.executable, "-m", "agentcms.server.prepare"], env=environment, cwd=PROJECT, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert done.stderr.startswith("The database cannot be reached: unable to open database file.")
    assert "Traceback" not in done.stderr


def test_every_variable_is_documented():
    read = set(re.findall(r"\$\{([A-Z_]+):?-", START.read_text()))
    readme = (PROJECT / "README.md").read_text()

    assert {name for name in read if f"`{name}`" not in readme} == {"PYTHON"}


def test_the_example_environment_passes_the_deployment_check(tmp_path):
    environment = {"PATH": os.environ["PATH"], **example(), "DATA_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]

    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
