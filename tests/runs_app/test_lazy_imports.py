"""The processes that load the model libraries and the views, and when."""

import subprocess
import sys

from agentcms.server.processes import PROJECT

LOADED = "; import sys; print('pydantic_ai' in sys.modules)"
WORKER = "from agentcms.celery import app; app.Worker(pool='solo', loglevel='ERROR', quiet=True)"


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_django_starts_without_model_libraries():
    assert printed("import agentcms.wsgi" + LOADED) == "False"


def test_the_web_server_loads_model_libraries_before_it_starts_processes():
    assert printed("import agentcms.rsgi" + LOADED) == "True"


def test_the_web_server_loads_the_views_before_it_starts_processes():
    code = "import agentcms.rsgi, sys; print('agents_app.views.editor.pages' in sys.modules)"

    assert printed(code) == "True"


def test_a_worker_loads_model_libraries_before_it_starts_threads():
    assert printed(WORKER + LOADED) == "True"
