"""The process of an ACP agent with its session: start, prompt, cancel and end.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
)
from django.core.exceptions import ValidationError
from pydantic import ValidationError as PydanticValidationError

from agentcms.wire.printable_text import printable
from tools_app.acp.cached_agents import AcpRecord
from tools_app.acp.connection.client import WorkspaceClient
from tools_app.acp.connection.model_choice import choose_model
from tools_app.acp.connection.transport import LineTransport, leave_out_invalid_messages
from tools_app.acp.errors import AcpError, AgentEnded
from tools_app.acp.turn import PromptTurn
from tools_app.acp.workspaces.folders import Workspace
from tools_app.models import AcpAgent
from tools_app.programs.commands import ACP_COMMANDS, PROXY, Command
from tools_app.programs.environment import mask_values, without_rest_of_value
from tools_app.programs.proxy import AddressProxy
from tools_app.programs.resource_limits import MEGABYTE, limited_argv

log = logging.getLogger(__name__)

START_TIMEOUT = 60  # seconds
CANCEL_TIMEOUT = 2  # seconds in which an agent may end a cancelled prompt
END_TIMEOUT = 1  # seconds in which the launcher may end what an agent started
MAX_STDERR = 2048  # characters, the last ones
STDERR_BUFFER_SIZE = 4 * MAX_STDERR  # bytes
INSIDE = "/workspace"  # the workspace in the sandbox
PROXY_INSIDE = "/run/proxy.sock"

_endings: set[asyncio.Task[None]] = set()  # an event loop keeps no reference to its tasks


def in_background(work: Coroutine[Any, Any, None]) -> None:
    """Do the work although the caller is cancelled or returns."""
    task = asyncio.get_running_loop().create_task(work)
    _endings.add(task)
    task.add_done_callback(_endings.discard)


@dataclass
class AgentProcess:
    """A running ACP agent in a workspace."""

    record: AcpRecord
    folder: Path
    session_id: str = ""
    can_load: bool = False
    stderr: bytearray = field(default_factory=bytearray)
    is_broken: bool = False
    is_ending: bool = False
    end_reason: str = ""  # a message for users, if the agent was switched off
    proxy: AddressProxy | None = None

    async def start(self, earlier_session: str = "") -> bool:
        """Start the program and open a session, the earlier one if the agent can load it.

        Return whether it is the earlier one. Raise AcpError, and end the program then.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self.spawn()
                return await self.open_session(earlier_session)
        except TimeoutError:
            self.kill_soon()
            title = self.record.title
            raise AcpError(f"The ACP agent '{title}' did not start within {START_TIMEOUT} seconds.") from None
        except (RequestError, PydanticValidationError) as error:
            self.kill_soon()
            raise self.request_error(error) from None
        except ConnectionError:
            raise await self.ended_error() from None
        except BaseException:  # also when the caller is cancelled, or the program would go on
            self.kill_soon()
            raise

    async def spawn(self) -> None:
        command = self.command()
        self.proxy = await AddressProxy.start() if command.network == PROXY and command.is_sandboxed else None
        self.process = await asyncio.create_subprocess_exec(
            *self.argv(command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**command.environment, **self.record.environment},
            # A group of processes, which `end` kills with all that the agent has started.
            start_new_session=True,
            # Of a line, which asyncio limits to 64 KB by default.
            limit=LineTransport.MAX_LINE,
        )
        self.stderr_task = asyncio.get_running_loop().create_task(self.collect_stderr())
        seen_as = INSIDE if command.is_sandboxed else str(self.folder)
        self.client = WorkspaceClient(Workspace(self.folder, seen_as))
        self.transport = LineTransport(
            cast("asyncio.StreamReader", self.process.stdout), cast("asyncio.StreamWriter", self.process.stdin)
        )
        self.connection = ClientSideConnection(self.client, self.transport)
        leave_out_invalid_messages(self.connection)

    def command(self) -> Command:
        """Return the command of the agent. Raise AcpError if it may not be started."""
        try:
            command = ACP_COMMANDS.get(self.record.command_key)
            command.require_sandbox()
        except ValidationError as error:
            raise AcpError(" ".join(error.messages)) from None
        return command

    def argv(self, command: Command) -> list[str]:
        """Return the command line: the sandbox, the launcher, and the program."""
        limits = self.record.limits
        values = {
            "DATA": limits.memory_mb * MEGABYTE,
            "NPROC": limits.processes,
            "CPU": limits.cpu_seconds,
            "CORE": 0,
        }
        if not command.is_sandboxed:
            return limited_argv(command, values, str(self.folder))
        # With `ask`, only our client writes, once a person has allowed it.
        bind = "--ro-bind" if self.record.permissions == AcpAgent.Permissions.ASK else "--bind"
        mounts = [bind, str(self.folder), INSIDE]
        if self.proxy is None:
            return limited_argv(command, values, INSIDE, mounts)
        mounts += ["--ro-bind", self.proxy.path, PROXY_INSIDE, *CERTIFICATES]
        return limited_argv(command, values, INSIDE, mounts, PROXY_INSIDE)

    async def open_session(self, earlier_session: str) -> bool:
        answer = await self.connection.initialize(
            PROTOCOL_VERSION,
            ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=False),
            Implementation(name="agent-cms", title="Agent CMS", version="1"),
        )
        capabilities = answer.agent_capabilities
        self.can_load = bool(capabilities is not None and capabilities.load_session)
        if self.record.auth_method_id:
            await self.connection.authenticate(self.record.auth_method_id)
        cwd = self.client.workspace.seen_as
        session: NewSessionResponse | LoadSessionResponse | None = None
        is_loaded = False
        if earlier_session and self.can_load:
            # An agent that no longer has the session gets a new one.
            with suppress(RequestError):
                session = await self.connection.load_session(cwd, earlier_session, [])
                self.session_id, is_loaded = earlier_session, True
        if not is_loaded:
            session = opened = await self.connection.new_session(cwd, mcp_servers=[])
            self.session_id = opened.session_id
        if self.record.model:
            await choose_model(self.connection, self.record, self.session_id, session)
        return is_loaded

    # --- Prompts

    async def prompt(self, texts: list[str], turn: PromptTurn) -> PromptResponse | None:
        """Send a prompt. Return the answer, or None if a person must be asked first. Raise AcpError."""
        self.client.turn, self.transport.lines_left = turn, LineTransport.MAX_LINES
        prompting = asyncio.ensure_future(self.connection.prompt(self.session_id, [*map(text_block, texts)]))
        interrupted = asyncio.ensure_future(turn.interrupted.wait())
        try:
            timeout = self.record.limits.prompt_timeout
            await asyncio.wait([prompting, interrupted], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if prompting.done() and turn.request is None and not turn.has_overflowed:
                return prompting.result()
            await self.cancel(prompting)
        except (RequestError, PydanticValidationError) as error:
            raise self.request_error(error) from None
        except ConnectionError:
            raise await self.ended_error() from None
        except asyncio.CancelledError:
            turn.is_over = True
            self.end_in_background(self.cancel_and_end(prompting))
            raise
        finally:
            interrupted.cancel()
            turn.is_over = True
        if turn.request is not None:
            return None
        raise self.limit_error(turn)

    def limit_error(self, turn: PromptTurn) -> AcpError:
        """Return the error for a prompt that was stopped."""
        if turn.has_overflowed:
            return AcpError(f"The ACP agent '{self.record.title}' wrote too much text and was stopped.")
        seconds = self.record.limits.prompt_timeout
        return AcpError(f"The ACP agent '{self.record.title}' did not finish within {seconds} seconds.")

    async def cancel(self, prompting: asyncio.Future[PromptResponse]) -> None:
        """Cancel a prompt. The process ends if the agent does not obey in time."""
        with suppress(ConnectionError, OSError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):  # an agent that reads nothing does not read this either
                await self.connection.cancel(self.session_id)
                await asyncio.wait([prompting])
        if not prompting.done() or prompting.cancelled() or prompting.exception() is not None:
            prompting.cancel()
            self.is_broken = True
            self.kill_soon()

    async def cancel_and_end(self, prompting: asyncio.Future[PromptResponse]) -> None:
        await self.cancel(prompting)
        await self.end()

    # --- The end

    def switch_off(self, reason: str) -> None:
        """End the program because its agent may no longer be used. A prompt in progress fails with the reason."""
        self.end_reason = reason
        self.kill_soon()

    def kill_soon(self) -> None:
        """End the program at once, unless it ends already."""
        if not self.is_ending:
            self.end_in_background(self.end())

    def end_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Await what ends the program, in the background. From now on, nobody may send another prompt."""
        self.is_broken = self.is_ending = True
        in_background(work)

    async def end(self) -> None:
        """End the program with all that it started."""
        self.is_broken = True
        if hasattr(self, "process"):
            if self.process.returncode is None:
                self.process.terminate()  # the launcher, or the sandbox, kills the rest
                with suppress(TimeoutError):
                    async with asyncio.timeout(END_TIMEOUT):
                        await self.process.wait()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.stderr_task.cancel()
        if hasattr(self, "connection"):
            with suppress(Exception):  # the pipe may be gone
                await self.connection.close()
        if self.proxy is not None:
            await self.proxy.close()

    @property
    def is_running(self) -> bool:
        return not self.is_broken and self.process.returncode is None

    async def collect_stderr(self) -> None:
        """Keep the end of what the program writes to its standard error."""
        stream = cast("asyncio.StreamReader", self.process.stderr)
        while part := await stream.read(4096):
            self.stderr += part
            del self.stderr[:-STDERR_BUFFER_SIZE]

    async def ended_error(self) -> AcpError:
        """Return the error of a program that has ended, with the end of its standard error."""
        self.is_broken = True
        if self.end_reason:
            return AcpError(self.end_reason)
        code: int | None = None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_TIMEOUT):
                    code = await self.process.wait()
                    await asyncio.wait([self.stderr_task])
        finally:  # also when the caller is cancelled: the program may have closed its output and go on
            self.kill_soon()
        text, secrets = self.stderr.decode("utf-8", "replace"), self.secrets()
        if len(self.stderr) == STDERR_BUFFER_SIZE:  # what came before is gone, and may be the beginning of a secret
            text = without_rest_of_value(text, secrets)
        text = mask_values(text, secrets)
        return AgentEnded(self.record.title, code, text[-MAX_STDERR:])

    def request_error(self, error: Exception) -> AcpError:
        """Return the error that the agent reported, in words."""
        text = str(error) if isinstance(error, RequestError) else "It sent an invalid answer."
        message = printable(mask_values(text, self.secrets())[:500])
        return AcpError(f"The ACP agent '{self.record.title}' reported an error: {message}")

    def secrets(self) -> dict[str, str]:
        command = ACP_COMMANDS.find(self.record.command_key)
        named = {name: os.environ.get(name, "") for name in command.environment_names} if command else {}
        return {**named, **self.record.environment}


# What a program needs to check the certificates of servers.
CERTIFICATES = [
    argument for path in ("/etc/ssl", "/etc/pki", "/etc/ca-certificates") for argument in ("--ro-bind-try", path, path)
]
