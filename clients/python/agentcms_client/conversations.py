"""Descriptions of the requests about conversations: threads, messages and working memory."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from agentcms_client.requests import Call


def thread_path(thread_id: str, *rest: str) -> str:
    return "/".join(["/api/memory/threads", quote(thread_id, safe=""), *(quote(part, safe="") for part in rest)])


class ConversationCalls:
    """A method for each route of conversations. Keyword arguments have the names of the API."""

    def list_threads(self, **query: Any) -> Call:
        """List threads: `list_threads(resourceId="alice", metadata={"trip": "Lisbon"})`."""
        return Call("GET", "/api/memory/threads", query)

    def create_thread(self, agent_id: str = "", **body: Any) -> Call:
        """Create a thread: `create_thread("concierge", resourceId="alice", threadId="trip", title="Trip")`."""
        return Call("POST", "/api/memory/threads", {"agentId": agent_id or None}, body)

    def get_thread(self, thread_id: str, **query: Any) -> Call:
        return Call("GET", thread_path(thread_id), query)

    def update_thread(self, thread_id: str, **body: Any) -> Call:
        return Call("PATCH", thread_path(thread_id), body=body)

    def delete_thread(self, thread_id: str, **query: Any) -> Call:
        return Call("DELETE", thread_path(thread_id), query)

    def clone_thread(self, thread_id: str, **body: Any) -> Call:
        return Call("POST", thread_path(thread_id, "clone"), body=body)

    def transfer_thread(self, thread_id: str, resource_id: str) -> Call:
        """Give a thread with its messages to another resource."""
        return Call("POST", thread_path(thread_id, "transfer"), body={"resourceId": resource_id})

    def list_messages(self, thread_id: str, **query: Any) -> Call:
        """List the newest messages of a thread, the oldest of them first."""
        return Call("GET", thread_path(thread_id, "messages"), query)

    def save_messages(self, messages: list[dict[str, Any]]) -> Call:
        """Store messages. Each names its thread: `{"threadId": "trip", "role": "user", "content": "Hi"}`."""
        return Call("POST", "/api/memory/save-messages", body={"messages": messages})

    def delete_messages(self, message_ids: Any, **query: Any) -> Call:
        """Delete messages by their IDs, all or none."""
        return Call("POST", "/api/memory/messages/delete", query, {"messageIds": message_ids})

    def search_messages(self, text: str, **query: Any) -> Call:
        """Search in a thread or a resource: `search_messages("hotel", resourceId="alice", agentId="concierge")`."""
        return Call("GET", "/api/memory/search", {"searchQuery": text, **query})

    def get_working_memory(self, thread_id: str, **query: Any) -> Call:
        return Call("GET", thread_path(thread_id, "working-memory"), query)

    def update_working_memory(self, thread_id: str, text: str | None, etag: str = "", **body: Any) -> Call:
        """Replace the working memory. With an ETag, only if nobody has changed it meanwhile. None clears it."""
        headers = {"If-Match": etag} if etag else {}
        return Call("POST", thread_path(thread_id, "working-memory"), {}, {"workingMemory": text, **body}, headers)

    def get_observational_memory(self, thread_id: str, **query: Any) -> Call:
        return Call("GET", "/api/memory/observational-memory", {"threadId": thread_id, **query})
