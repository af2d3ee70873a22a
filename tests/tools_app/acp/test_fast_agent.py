"""A published ACP agent as a counterpart: `fast-agent-acp` with its model that repeats what it reads."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import UserFactory
from tests.memory_app.conftest import add_thread
from tests.tools_app.acp.conftest import BOXED, Conversation, create_agent
from tools_app.acp.sessions import agent_pool

pytestmark = pytest.mark.django_db(transaction=True)

REQUIREMENT = "fast-agent-mcp==0.10.48"  # has the program; the package named like it is empty
# It asks for releases of this package that were published a day ago, which not every index has.
OVERRIDE = "certifi>=2026.1"
NEWEST_FIRST = ("3.14", "3.13", "3.12")
IS_USABLE = "import sys, ensurepip; print(sys.executable); sys.exit(sys.version_info < (3, 12))"


def find_python():
    """Return a Python that the agent runs on, also one of pyenv that is not its chosen one."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [path for version in NEWEST_FIRST if (path := shutil.which(f"python{version}"))]
    candidates += [path for version in NEWEST_FIRST for path in versions.glob(f"{version}.*/bin/python3")]
    for candidate in (sys.executable, *candidates):
        done = subprocess.run([candidate, "-c", IS_USABLE], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    pytest.fail("fast-agent-acp needs Python 3.12 or newer. Install one for `make drill`.")


def install_agent(folder: Path) -> Path:
    """Install the agent into an environment of its own, and return the path of its program."""
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    assert uv, "Installing the agent needs uv."
    (folder / "overrides.txt").write_text(OVERRIDE)
    subprocess.run([uv, "venv", "--quiet", "--python", find_python(), folder / "agent"], check=True)
    python = folder / "agent" / "bin" / "python"
    options = ["--quiet", "--python", python, "--override", folder / "overrides.txt"]
    subprocess.run([uv, "pip", "install", *options, REQUIREMENT], check=True)
    return python.with_name("fast-agent-acp")


@pytest.mark.drill  # it has 230 MB and takes 15 seconds to start
def test_a_published_agent_answers_twice_in_one_process_and_uses_its_workspace(tmp_path_factory, settings):
    program = install_agent(tmp_path_factory.mktemp("acp"))
    argv = [str(program), "--model", "passthrough"]
    settings.ACP_COMMANDS[BOXED] = {**settings.ACP_COMMANDS[BOXED], "argv": argv}
    create_agent(limits={"promptSeconds": 120})
    write = '***CALL_TOOL write_text_file {"path": "a.txt", "content": "from the agent"}'
    read = '***CALL_TOOL read_text_file {"path": "a.txt"}'
    conversation = Conversation(add_thread(UserFactory()).pk)

    async def converse():
        answers = [await conversation.send(task) for task in ("one", write, read)]
        (slot,) = agent_pool().entries.values()
        await slot.process.end()
        return answers

    (first, *_), (written, events, _), (text, *_) = asyncio.run(converse())

    assert (first, text) == ("one", "from the agent")
    assert "Successfully wrote" in written
    assert {"acp-tool-call", "acp-permission", "acp-file"} <= {event.kind for event in events}
