"""The side of the protocol that an ACP agent calls: files of the workspace, permissions, and its updates.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    ToolCallUpdate,
    WriteTextFileResponse,
)
from pydantic import BaseModel

from agentcms.wire.json_types import JSONObject
from agentcms.wire.printable_text import printable
from agentcms.wire.validation import find_json_faults
from runs_app.engine.thread_pools import run_briefly
from runs_app.events.stream_chunks import truncate_text, truncate_value
from tools_app.acp.permissions import (
    CANNOT_ASK_MESSAGE,
    READ_KINDS,
    PermissionAnswer,
    PermissionPolicy,
    PermissionRequest,
    allows_request,
    write_request,
)
from tools_app.acp.turn import PromptTurn
from tools_app.acp.workspaces.folders import PathRefused, Workspace

MAX_CALL_TITLE_LENGTH = 500
MAX_PERMISSION_OPTIONS = 20
MAX_OPTION_LENGTH = 200
MAX_REPORTED_TOOL_CALLS = 200  # of one prompt, whose content is stored
MAX_APPROVED_WRITES = 1000  # of one prompt that are stored
MAX_BUFFERED_LENGTH = 16 * 1024 * 1024  # characters of the tool calls, and of the allowed writes, of one prompt
OVER_MESSAGE = "There is no prompt. Wait for the next one."
REJECTED_MESSAGE = "The write was not allowed."
REFUSED_CODE = -32000


def raise_request_error(message: str) -> NoReturn:
    """Raise the error that the agent gets."""
    raise RequestError(REFUSED_CODE, message)


class WorkspaceClient:
    """A client of one agent in one workspace. It refuses what the agent asks for outside of a prompt."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.turn: PromptTurn | None = None

    def require_turn(self) -> PromptTurn:
        if self.turn is None or not self.turn.is_active:
            raise_request_error(OVER_MESSAGE)
        return self.turn

    # --- Files

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: object
    ) -> ReadTextFileResponse:
        self.require_turn()
        try:
            text = await run_briefly(self.workspace.read, path)
        except PathRefused as error:
            raise_request_error(str(error))
        if line is not None or limit is not None:
            start = max((line or 1) - 1, 0)
            lines = text.splitlines(keepends=True)[start:]
            text = "".join(lines if limit is None else lines[:limit])
        return ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: object
    ) -> WriteTextFileResponse:
        turn = self.require_turn()
        try:
            path = "/".join(self.workspace.split(path))
            if not self.may_write(turn, path, content):
                raise_request_error(REJECTED_MESSAGE)
            await run_briefly(self.workspace.write, path, content)
        except PathRefused as error:
            raise_request_error(str(error))
        turn.add_audit_event("acp-file", path=path, action="write")
        return WriteTextFileResponse()

    def may_write(self, turn: PromptTurn, path: str, content: str) -> bool:
        """Return whether a file may be written. End the prompt if a person must be asked."""
        if (path, content) in turn.approved_writes:
            # Once: to write the same again, the agent needs another permission.
            turn.approved_writes.discard((path, content))
            return True
        request = write_request(path, content)
        return allows_request(request, self.decide(turn, request))

    # --- Permissions

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: object
    ) -> RequestPermissionResponse:
        turn = self.turn
        if turn is None or not turn.is_active:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        known = self.merge_tool_call(turn, tool_call)
        request = self.build_request(known, answers_of(options))
        option_id = self.decide(turn, request)
        if not option_id:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        if (
            allows_request(request, option_id) and request.kind not in READ_KINDS
        ):  # nobody was asked about what it writes
            self.approve_writes(turn, known)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option_id))

    def decide(self, turn: PromptTurn, request: PermissionRequest) -> str:
        """Return the chosen option of a request, or a blank text. End the prompt if a person must be asked."""
        option_id = turn.decisions.answer(request)
        if option_id is None:
            turn.ask(request)
            return ""
        is_unasked = (
            turn.decisions.policy in (PermissionPolicy.ASK, PermissionPolicy.ALLOW_READS)
            and not turn.decisions.can_ask
        )
        is_rejected = not allows_request(request, option_id)
        reason = CANNOT_ASK_MESSAGE if is_unasked and is_rejected else ""
        turn.add_audit_event("acp-permission", title=request.title, allowed=not is_rejected, reason=reason)
        return option_id

    def build_request(self, known: JSONObject, options: tuple[PermissionAnswer, ...]) -> PermissionRequest:
        title = truncate_text(printable(str(known.get("title") or "Permission")), MAX_CALL_TITLE_LENGTH)
        content, raw_input = known.get("content") or [], known.get("rawInput")
        diffs = {item["path"]: item.get("newText") for item in content if item.get("type") == "diff"}
        locations = {str(item["path"]) for item in known.get("locations") or []} | {*diffs}
        paths = tuple(sorted(self.shown_path(path) for path in locations))
        change = content if content and not diffs else {self.shown_path(path): text for path, text in diffs.items()}
        parts = [part for part in (change, raw_input) if part]
        return PermissionRequest(
            title, str(known.get("kind") or "other"), paths, options, parts[0] if len(parts) == 1 else parts or None
        )

    def shown_path(self, path: str) -> str:
        """Return a path relative to the workspace, or unchanged if it is outside."""
        try:
            return "/".join(self.workspace.split(path))
        except PathRefused:
            return path

    def approve_writes(self, turn: PromptTurn, known: JSONObject) -> None:
        """Allow the files that a request announces to be written. Above a limit, discard all that are allowed so far.

        The agent then asks again before it writes them.
        """
        turn.approved_writes |= self.announced_writes(known)
        length = sum(len(content) for _, content in turn.approved_writes)
        if length > MAX_BUFFERED_LENGTH or len(turn.approved_writes) > MAX_APPROVED_WRITES:
            turn.approved_writes.clear()

    def announced_writes(self, known: JSONObject) -> set[tuple[str, str]]:
        """Return the files that an allowed request says it will write."""
        diffs = [item for item in known.get("content") or [] if item.get("type") == "diff"]
        return {(self.shown_path(item["path"]), item.get("newText", "")) for item in diffs}

    # --- Updates

    async def session_update(self, session_id: str, update: Any, **kwargs: object) -> None:
        turn = self.turn
        if turn is None or not turn.is_active:
            return  # a loaded session repeats its messages
        match getattr(update, "session_update", ""):
            case "agent_message_chunk":
                turn.add_text("text", text_of_block(update.content))
            case "agent_thought_chunk":
                turn.add_text("thought", text_of_block(update.content))
            case "tool_call" | "tool_call_update":
                known = self.merge_tool_call(turn, update)
                names = ("toolCallId", "title", "kind", "status", "locations", "rawInput", "rawOutput")
                values = {name: truncate_value(known[name]) for name in names if name in known}
                turn.add_activity("acp-tool-call", **values)
            case "plan":
                turn.add_activity("acp-plan", entries=[dump(entry) for entry in update.entries[:100]])
            case "usage_update":
                turn.add_activity("acp-usage", **dump(update))

    def merge_tool_call(self, turn: PromptTurn, update: Any) -> JSONObject:
        """Return all that the agent has said of a tool call, under wire names."""
        values = dump(update)
        values.pop("sessionUpdate", None)
        length = len(json.dumps(values))
        turn.tool_call_length += length
        if len(turn.tool_calls) >= MAX_REPORTED_TOOL_CALLS or turn.tool_call_length > MAX_BUFFERED_LENGTH:
            turn.tool_calls.clear()
            turn.tool_call_length = length
        known = turn.tool_calls.setdefault(str(values.get("toolCallId", "")), {})
        known |= values
        return known

    # --- What is not offered

    async def create_terminal(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("terminal/create")

    async def terminal_output(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("terminal/output")

    async def release_terminal(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("terminal/release")

    async def wait_for_terminal_exit(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("terminal/wait_for_exit")

    async def kill_terminal(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("terminal/kill")

    async def create_elicitation(self, *args: object, **kwargs: object) -> NoReturn:
        raise RequestError.method_not_found("elicitation/create")

    async def complete_elicitation(self, *args: object, **kwargs: object) -> None:
        return None

    async def ext_method(self, method: str, params: JSONObject) -> NoReturn:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: JSONObject) -> None:
        return None

    def on_connect(self, conn: Any) -> None:
        return None


def answers_of(options: Sequence[PermissionOption]) -> tuple[PermissionAnswer, ...]:
    """Return the answers that a person can choose: one of each ID, for a refusal must not have that of another answer.

    One whose ID cannot be stored is left out: its request would be stored with another ID, or not at all.
    """
    by_id: dict[str, PermissionAnswer] = {}
    for item in options[:MAX_PERMISSION_OPTIONS]:
        if not any(find_json_faults(item.option_id)):
            name = truncate_text(printable(item.name), MAX_OPTION_LENGTH)
            by_id.setdefault(item.option_id, PermissionAnswer(item.option_id, name, item.kind))
    return tuple(by_id.values())


def text_of_block(content: Any) -> str:
    """Return the text of a content block, or words in place of an image or a file."""
    text = getattr(content, "text", None)
    return text if isinstance(text, str) else f"({getattr(content, 'type', 'content')} not shown)"


def dump(value: BaseModel) -> JSONObject:
    """Return a value of the protocol as JSON."""
    plain = json.loads(value.model_dump_json(by_alias=True, exclude_none=True))
    plain.pop("_meta", None)
    return dict(plain)
