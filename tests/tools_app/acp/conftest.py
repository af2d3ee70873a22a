"""Fixtures of tests of ACP agents."""

import asyncio
import itertools
import os
import sys
from pathlib import Path

import pytest
from cachetools import TTLCache

from agentcms.cache import SizeLimitedCache
from agentcms.ids import uuid7
from runs_app.engine.engine import find_engine
from tools_app.acp.cached_agents import acp_table
from tools_app.models import AcpAgent
from tools_app.programs.sandbox import is_sandbox_available

PROGRAM = Path(__file__).parent.parent.parent / "acp_agent.py"
task_numbers = itertools.count()
BOXED = "boxed" if is_sandbox_available() else "bare"


@pytest.fixture(autouse=True)
def commands(settings, tmp_path, monkeypatch):
    """Name the agent of the tests as a program, in the sandbox and without."""
    monkeypatch.setattr(acp_table, "_cache", SizeLimitedCache(TTLCache(1, 60)))
    argv = [sys.executable, str(PROGRAM)]
    names = ["TOKEN", "LOADS", "MODELS", "SET_MODEL", "SILENT"]
    settings.WORKSPACES_DIR = tmp_path / "workspaces"
    settings.ACP_COMMANDS = {
        "boxed": {"argv": argv, "env": names},
        "online": {"argv": argv, "env": names, "network": "proxy"},
        "bare": {"argv": argv, "env": names, "sandbox": "none"},
    }


def create_agent(**fields):
    """Create the record of the agent, by default without questions, and with an environment."""
    environment = fields.pop("environment", {})
    values = {"key": "worker", "title": "Worker", "command_key": BOXED, "permissions": "first_option", **fields}
    row = AcpAgent(**values)
    row.set_environment(environment)
    row.full_clean()
    row.save()
    return row


class Conversation:
    """Prompts to the agent in one event loop, as a worker sends them. `thread_id` is that of all of them."""

    def __init__(self, thread_id=None, owner_id="support"):
        self.thread_id, self.owner_id, self.root_id = thread_id, owner_id, uuid7()

    def ask(self, *tasks, can_ask=False):
        """Return the text of the answer to each task, in one process of ours that ends then."""
        return [text for text, _, _ in self.ask_all(*tasks, can_ask=can_ask)]

    def ask_all(self, *tasks, can_ask=False):
        """Return the text, the events and the request of each task."""
        return asyncio.run(self._ask_all(tasks, can_ask))

    async def _ask_all(self, tasks, can_ask):
        from tools_app.acp.sessions import agent_pool

        try:
            return [await self.send(task, can_ask=can_ask) for task in tasks]
        finally:
            await end_all(agent_pool())

    async def send(self, task, *, can_ask=False):
        from tools_app.acp.connection.prompts import Prompt
        from tools_app.acp.sessions import WorkPlace

        updates = []
        place = WorkPlace(self.root_id, self.root_id, self.owner_id, self.thread_id)
        result = await Prompt("worker", task, place, can_ask, updates.append).send()
        text = "".join(update.text for update in updates if update.kind == "text")
        return text, [update for update in updates if update.kind != "text"], result.request


@pytest.fixture
def ended_agents():
    """End the agents of the engine after the test."""
    yield
    engine = find_engine()
    if engine is not None and "tools_app.acp.sessions" in sys.modules:
        sessions = sys.modules["tools_app.acp.sessions"]
        if (pool := sessions._pools.get(engine.loop)) is not None:
            asyncio.run_coroutine_threadsafe(end_all(pool), engine.loop).result(30)


async def end_all(pool):
    """End all processes of a pool, and wait until they are gone."""
    from tools_app.acp.connection import process

    for slot in list(pool.entries.values()):
        if slot.process is not None:
            await slot.process.end()
    if process._endings:
        await asyncio.wait(process._endings)


def sleeping_task():
    """Return a task by which an agent starts a program that sleeps, and the command line of only this program.

    Other copies of the tests may run on the same machine.
    """
    seconds = 1000 * os.getpid() + next(task_numbers)
    return f"hang {seconds}", f"sleep\x00{seconds}\x00"


def processes(text):
    """Return the IDs of the other processes whose command line contains a text."""
    ids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{name}/cmdline").read_text()
        except OSError:
            continue
        if text in line and name != str(os.getpid()):
            ids.append(name)
    return ids
