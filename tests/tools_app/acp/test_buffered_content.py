"""The content that a worker stores of a prompt: announcing files and plans without end fills no memory."""

import asyncio
import json

import pytest
from acp.schema import AgentPlanUpdate, FileEditToolCallContent, PermissionOption, PlanEntry, ToolCallUpdate

from agentcms.wire.canonical import canonical
from tools_app.acp.connection.client import MAX_BUFFERED_LENGTH, WorkspaceClient
from tools_app.acp.permissions import Decisions, PermissionPolicy
from tools_app.acp.turn import MAX_ACTIVITIES_LENGTH, PromptTurn
from tools_app.acp.workspaces.folders import Workspace

# The files are written in a thread that may still have the connection of an earlier test, and looks whether it works.
pytestmark = pytest.mark.django_db

MEGABYTE = 1024 * 1024
OPTIONS = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]


def edit(number, length=MEGABYTE):
    text = str(number).ljust(length, "x")
    content = FileEditToolCallContent(type="diff", path=f"{number}.txt", new_text=text)
    return ToolCallUpdate(tool_call_id=str(number), title="Edit", kind="edit", content=[content])


@pytest.fixture
def client(tmp_path):
    """Return the client of an agent in a prompt whose requests are all allowed."""
    client = WorkspaceClient(Workspace(tmp_path, "/workspace"))
    client.turn = PromptTurn(lambda update: None, Decisions(PermissionPolicy.FIRST_OPTION, can_ask=False))
    return client


def test_the_content_of_tool_calls_and_of_allowed_writes_is_limited(client):
    async def announce():
        for number in range(60):
            await client.request_permission("session", edit(number), OPTIONS)

    asyncio.run(announce())

    assert len(canonical(client.turn.tool_calls)) <= MAX_BUFFERED_LENGTH
    assert sum(len(content) for _, content in client.turn.approved_writes) <= MAX_BUFFERED_LENGTH


def test_the_content_of_the_latest_tool_calls_is_stored(client):
    async def announce():
        for number in range(20):
            await client.request_permission("session", edit(number), OPTIONS)
        await client.write_text_file("session", "19.txt", "19".ljust(MEGABYTE, "x"))

    asyncio.run(announce())

    assert "19" in client.turn.tool_calls
    assert client.workspace.read("19.txt").startswith("19x")


def test_plans_without_end_are_left_out_and_suppress_no_event_about_a_file(client):
    updates = []
    client.turn.emit = updates.append

    async def flood():
        for number in range(600):
            entry = PlanEntry(content="x" * (MEGABYTE if number < 30 else 1), priority="low", status="pending")
            await client.session_update("session", AgentPlanUpdate(session_update="plan", entries=[entry]))
        await client.request_permission("session", edit(1, 10), OPTIONS)
        await client.write_text_file("session", "1.txt", "1".ljust(10, "x"))

    asyncio.run(flood())

    plans = [json.dumps(update.payload) for update in updates if update.kind == "acp-plan"]
    assert sum(map(len, plans)) <= MAX_ACTIVITIES_LENGTH
    assert [update.kind for update in updates if update.kind != "acp-plan"] == ["acp-permission", "acp-file"]
