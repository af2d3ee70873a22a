"""An ACP agent for the tests. The first word of a prompt says what it does."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import acp.agent.connection
from acp import Agent, run_agent, update_agent_message_text, update_agent_thought_text, update_plan
from acp.helpers import plan_entry, start_tool_call, tool_diff_content
from acp.router import Route
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SetSessionConfigOptionResponse,
    ToolCallUpdate,
    Usage,
)

CHOICES = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class TestAgent(Agent):
    def on_connect(self, conn):
        self.conn, self.count, self.model = conn, 0, "its own"

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        if "SILENT" in os.environ:
            await asyncio.sleep(300)
        self.capabilities = client_capabilities
        loads = AgentCapabilities(load_session=os.environ.get("LOADS") == "yes")
        return InitializeResponse(protocol_version=protocol_version, agent_capabilities=loads)

    async def authenticate(self, method_id, **kwargs):
        if method_id != "token":
            raise ValueError("No such method.")

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        return NewSessionResponse(session_id=f"session-{os.urandom(4).hex()}", config_options=self.options())

    def options(self):
        """Return the choice of a model, as agents of the current protocol offer it."""
        models = [SessionConfigSelectOption(value=name, name=name) for name in os.environ.get("MODELS", "").split()]
        choice = {"id": "llm", "name": "Model", "category": "model", "type": "select"}
        return [SessionConfigOptionSelect(**choice, current_value=models[0].value, options=models)] if models else None

    async def set_config_option(self, config_id, session_id, value, **kwargs):
        self.model = f"{config_id}={value}"
        return SetSessionConfigOptionResponse(config_options=self.options())

    async def set_model(self, params):
        """Choose a model, as agents of earlier drafts of the protocol let clients do."""
        self.model = f"chosen={params['modelId']}"

    async def load_session(self, cwd, session_id, additional_directories=None, mcp_servers=None, **kwargs):
        await self.conn.session_update(session_id, update_agent_message_text("old words"))
        return LoadSessionResponse()

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def prompt(self, session_id, prompt, **kwargs):
        self.session, self.cancelled = session_id, asyncio.Event()
        self.count += 1
        word, _, rest = prompt[0].text.partition(" ")
        try:
            answer = await getattr(self, f"do_{word}")(rest)
        except Exception as error:
            answer = f"failed: {error}"
        await self.say(str(answer))
        stop = "cancelled" if self.cancelled.is_set() else "end_turn"
        return PromptResponse(stop_reason=stop, usage=Usage(input_tokens=7, output_tokens=3, total_tokens=10))

    async def say(self, text):
        await self.conn.session_update(self.session, update_agent_message_text(text))

    async def do_echo(self, text):
        await self.conn.session_update(self.session, update_agent_thought_text("thinking"))
        await self.conn.session_update(self.session, update_plan([plan_entry("Echo it")]))
        for part in ("one ", "two "):
            await self.say(part)
            await asyncio.sleep(0.05)
        return f"{self.count} {text}"

    async def do_model(self, text):
        return self.model

    async def do_terminal(self, text):
        try:
            await self.conn.create_terminal(self.session, "sh")
        except Exception as error:
            return f"offered: {self.capabilities.terminal}, {error}"

    async def do_session(self, text):
        return self.session

    async def do_read(self, path):
        return (await self.conn.read_text_file(self.session, path)).content

    async def do_write(self, text):
        path, _, content = text.partition(" ")
        await self.conn.write_text_file(self.session, path, content)
        return "written"

    async def ask(self, title, choices=CHOICES, **fields):
        call = ToolCallUpdate(tool_call_id=f"call-{title}", title=title, **fields)
        outcome = (await self.conn.request_permission(self.session, call, choices)).outcome
        return getattr(outcome, "option_id", "cancelled")

    async def do_edit(self, text):
        path, _, content = text.partition(" ")
        change = tool_diff_content(path, content)
        await self.conn.session_update(self.session, start_tool_call("edit", f"Edit {path}", kind="edit"))
        if await self.ask(f"Edit {path}", kind="edit", content=[change]) in ("yes", "always"):
            await self.conn.write_text_file(self.session, path, content)
            return "edited"
        return "not edited"

    async def do_twice(self, text):
        return [await self.ask("First", kind="execute"), await self.ask("Second", kind="execute")]

    async def do_look(self, text):
        return await self.ask("Look", kind="read")

    async def do_mislead(self, path):
        """Ask with a refusal that has the ID of another answer."""
        choices = [*CHOICES[::-1], PermissionOption(option_id="no", name="Allow", kind="allow_always")]
        return await self.ask("Mislead", choices, kind="edit", content=[tool_diff_content(path, "x")])

    async def do_exchange(self, path):
        """Ask, and for the same again once a person has decided, with the IDs of its answers exchanged."""
        ids = ("no", "yes") if self.count == 1 else ("yes", "no")
        kinds = (("reject_once", ids[0]), ("allow_once", ids[1]))
        choices = [PermissionOption(option_id=option_id, name=kind, kind=kind) for kind, option_id in kinds]
        await self.ask("Exchange", choices, kind="edit", content=[tool_diff_content(path, "x")])
        await self.conn.write_text_file(self.session, path, "x")
        return "written"

    async def do_disguise(self, text):
        """Ask with words that look like others."""
        choices = [PermissionOption(option_id="yes", name="\u202eoN", kind="allow_once")]
        return await self.ask("Read \u202etxt.a\x1b[2J", choices, kind="edit")

    async def do_pretend(self, path):
        """Ask for a permission to read, with a change that it then makes."""
        await self.ask("Pretend", kind="read", content=[tool_diff_content(path, "x")])
        await self.conn.write_text_file(self.session, path, "x")
        return "written"

    async def do_environment(self, text):
        """Return the value of a variable, or the names of all."""
        return os.environ[text] if text else " ".join(sorted(os.environ))

    async def do_open(self, path):
        with open(path) as file:
            return f"read: {file.read()[:50]}"

    async def do_log(self, text):
        """Note the beginning and the end of a task that takes a second, in a file of the workspace."""
        name, marker = text.split()
        subprocess.Popen(["sleep", marker], start_new_session=True)
        for word in ("begins", "ends"):
            with open("log", "a") as file:
                file.write(f"{name} {word}\n")
            await asyncio.sleep(1)
        return f"logged {name}"

    async def do_put(self, path):
        with open(path, "w") as file:
            file.write("by itself")
        return "put"

    async def do_connect(self, address):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=2):
            return "connected"

    async def do_proxy(self, address):
        host, _, port = os.environ["HTTPS_PROXY"].removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=2) as connection:
            connection.sendall(f"CONNECT {address} HTTP/1.1\r\n\r\n".encode())
            return connection.recv(100).decode().split("\r\n")[0]

    async def do_hang(self, text):
        subprocess.Popen(["sleep", text.split()[-1]], start_new_session=True)
        if "deaf" in text:
            await asyncio.sleep(300)
        await self.say("hanging")
        await self.cancelled.wait()
        Path("cancelled").write_text(self.session)
        return "cancelled"

    async def do_linger(self, text):
        """Think, plan and work, until somebody stops the run."""
        for part in ("I should ", "look first."):
            await self.conn.session_update(self.session, update_agent_thought_text(part))
        await self.conn.session_update(self.session, update_plan([plan_entry("Look"), plan_entry("Answer")]))
        await self.conn.session_update(self.session, start_tool_call("look", "Look at a.txt", status="pending"))
        await self.conn.session_update(self.session, start_tool_call("look", "Looked at a.txt", status="completed"))
        await self.cancelled.wait()
        return "cancelled"

    async def do_crash(self, text):
        line = f"The key is {os.environ.get('TOKEN')}."
        print(*[line] * int(text or 1), sep="\n", file=sys.stderr, flush=True)
        os._exit(3)

    async def do_memory(self, text):
        return len(bytearray(int(text) * 1024 * 1024))

    async def do_deafen(self, path):
        """Ask for a file again and again, and read nothing any more."""
        params = {"sessionId": self.session, "path": path}
        request = {"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": params}
        os.set_blocking(1, True)
        for _ in range(2000):
            os.write(1, json.dumps(request).encode() + b"\n")
        time.sleep(300)

    async def do_flood(self, text):
        await self.say("x" * 5_000_000)


def build_router(agent, *args, **kwargs):
    """Add the method of earlier drafts with which clients chose a model, which the library has no more."""
    router = build_current_router(agent, *args, **kwargs)
    if "SET_MODEL" in os.environ:
        router.add_route(Route(method="session/set_model", func=agent.set_model, kind="request"))
    return router


build_current_router = acp.agent.connection.build_agent_router
acp.agent.connection.build_agent_router = build_router

if __name__ == "__main__":
    asyncio.run(run_agent(TestAgent()))
