"""Lazy loading of the model libraries."""

import subprocess
import sys

from agentcms.server.processes import PROJECT

START = "import sys; import agentcms.wsgi; from runs_app.engine import engine; "
LOADED = "print('pydantic_ai' in sys.modules)"
WAIT = "import threading; [each.join() for each in threading.enumerate() if each.name == 'run-preload']; "


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_web_server_starts_without_model_libraries():
    assert printed(START + LOADED) == "False"


def test_the_playground_loads_model_libraries_in_the_background():
    assert printed(START + "engine.preload(); " + WAIT + LOADED) == "True"
