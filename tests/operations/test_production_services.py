"""Production services of an own copy, started as systemd starts them."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.operations.running_copy import is_ready, ready, wait_for_jobs
from tests.operations.test_deployment import START, example
from tests.served import Served, own_database, wait_until

pytestmark = pytest.mark.postgres_only


@contextlib.contextmanager
def part(copy: Served, name: str) -> Iterator[subprocess.Popen]:
    """Run one service in the foreground, as systemd does."""
    with copy.log.open("ab") as log:
        process = subprocess.Popen([START, name], env=copy.environment, cwd="/", stdout=log, stderr=log)
    try:
        yield process
        if process.poll() is None:
            process.terminate()
            assert process.wait(60) == 0, copy.log_text()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def copy(tmp_path, valkey) -> Iterator[Served]:
    """Return a copy with the example environment, its own database and its own broker."""
    own = {"REDIS_URL": valkey, "ALLOWED_HOSTS": "127.0.0.1", "HTTPS": "no", "PYTHON": sys.executable}
    with own_database() as database:
        settings = {**example(), **own, **database, "WEB_WORKERS": "2"}
        for name in ("DATA_DIR", "CSRF_TRUSTED_ORIGINS"):
            del settings[name]
        yield Served(tmp_path / "var", **settings)


def test_production_services_work_without_the_scheduler(copy):
    prepared = subprocess.run([START, "prepare"], env=copy.environment, capture_output=True, text=True, timeout=120)
    assert prepared.returncode == 0, prepared.stderr
    copy.create_user("ann", "--superuser")
    body = {"id": "porter", "name": "Porter", "instructions": "", "model": {"provider": "demo", "name": "echo"}}

    with part(copy, "web"), part(copy, "worker"), part(copy, "worker"), part(copy, "beat") as beat:
        wait_until(lambda: is_ready(copy), 120, f"readiness; {copy.log_text()}")
        with copy.client(copy.create_api_key("ann")) as client:
            made = client.post("/api/stored/agents", json=body)
            beat.kill()
            beat.wait()
            edited = client.patch("/api/stored/agents/porter", json={"instructions": "Without beat."})
            export = client.post("/api/stored/agent-export")
        [(state, attempts, *_)] = wait_for_jobs(copy, "export_agents")
        checks = ready(copy)

    assert [answer.status_code for answer in (made, edited, export)] == [201, 200, 202]
    assert (state, attempts) == ("done", 1)
    assert checks["database"] == checks["broker"] == "ok"
