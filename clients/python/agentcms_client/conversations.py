"""Descriptions of the requests about conversations: threads, messages, memory and the data of a person."""

from __future__ import annotations

import uuid

from agentcms_client.json_types import JSONObject, JSONValue
from agentcms_client.requests import Call, joined_path

OBSERVATION_TIMEOUT = 45.0  # seconds, longer than the server waits


def with_id(message: JSONObject) -> JSONObject:
    """Return a message or a signal with an ID, by which the server recognizes it when it is sent again."""
    return {**message, "id": message.get("id") or str(uuid.uuid4())}


class ThreadCalls:
    """Threads and messages below `root`. Keyword arguments have the names of the API."""

    root = "/api/memory"
    agent_name = "agentId"  # the name of the agent in a query

    def _thread(self, *parts: str) -> str:
        return f"{self.root}/threads/{joined_path(*parts)}"

    def list_threads(self, **query: JSONValue) -> Call:
        """List threads: `list_threads(resourceId="alice", metadata={"trip": "Lisbon"})`."""
        return Call("GET", f"{self.root}/threads", query)

    def create_thread(self, agent_id: str = "", **body: JSONValue) -> Call:
        """Create a thread: `create_thread("concierge", resourceId="alice", threadId="trip", title="Trip")`."""
        body.setdefault("threadId", str(uuid.uuid4()))  # a repeat returns the same thread
        query = {self.agent_name: agent_id or None}
        return Call("POST", f"{self.root}/threads", query, body)

    def get_thread(self, thread_id: str, **query: JSONValue) -> Call:
        return Call("GET", self._thread(thread_id), query)

    def update_thread(self, thread_id: str, **body: JSONValue) -> Call:
        return Call("PATCH", self._thread(thread_id), body=body)

    def delete_thread(self, thread_id: str, **query: JSONValue) -> Call:
        """Delete a thread with its messages, and stop its run."""
        return Call("DELETE", self._thread(thread_id), query)

    def list_messages(self, thread_id: str, **query: JSONValue) -> Call:
        """List the newest messages of a thread, the oldest of them first."""
        return Call("GET", self._thread(thread_id, "messages"), query)

    def save_messages(self, messages: list[JSONObject]) -> Call:
        """Store messages. Each names its thread: `{"threadId": "trip", "role": "user", "content": "Hi"}`."""
        body = {"messages": [with_id(message) for message in messages]}
        return Call("POST", f"{self.root}/save-messages", body=body)

    def delete_messages(self, message_ids: JSONValue, **query: JSONValue) -> Call:
        """Delete messages by their IDs, all or none."""
        return Call("POST", f"{self.root}/messages/delete", query, {"messageIds": message_ids})


class NetworkCalls(ThreadCalls):
    """The same routes by their older name, with `networkId` in the place of `agentId`."""

    root = "/api/memory/network"
    agent_name = "networkId"


class ConversationCalls(ThreadCalls):
    """A method for each route of conversations. Keyword arguments have the names of the API."""

    network = NetworkCalls()

    def clone_thread(self, thread_id: str, **body: JSONValue) -> Call:
        return Call("POST", self._thread(thread_id, "clone"), body=body)

    def transfer_thread(self, thread_id: str, resource_id: str) -> Call:
        """Give a thread with its messages to another resource."""
        return Call("POST", self._thread(thread_id, "transfer"), body={"resourceId": resource_id})

    def list_participants(self, thread_id: str) -> Call:
        """List the members who take part in a thread of somebody else."""
        return Call("GET", self._thread(thread_id, "participants"))

    def add_participant(self, thread_id: str, username: str, **body: JSONValue) -> Call:
        """Let a member of the team take part: `add_participant("trip", "ben", functionalRole="editor")`."""
        return Call("POST", self._thread(thread_id, "participants"), body={"username": username, **body})

    def remove_participant(self, thread_id: str, user_id: int) -> Call:
        return Call("DELETE", self._thread(thread_id, "participants", str(user_id)))

    def search_messages(self, text: str, **query: JSONValue) -> Call:
        """Search in a thread or a resource: `search_messages("hotel", resourceId="alice", agentId="concierge")`."""
        return Call("GET", f"{self.root}/search", {"searchQuery": text, **query})

    def get_memory_config(self, agent_id: str) -> Call:
        """Read the memory of an agent. Its `config` is None without one."""
        return Call("GET", f"{self.root}/config", {"agentId": agent_id})

    def get_memory_status(self, agent_id: str, **query: JSONValue) -> Call:
        """Read whether an agent has a memory, and the state of the observations of a thread."""
        return Call("GET", f"{self.root}/status", {"agentId": agent_id, **query})

    def get_working_memory(self, thread_id: str, **query: JSONValue) -> Call:
        return Call("GET", self._thread(thread_id, "working-memory"), query)

    def update_working_memory(self, thread_id: str, text: str | None, etag: str = "", **body: JSONValue) -> Call:
        """Replace the working memory. With an ETag, only if nobody has changed it meanwhile. None clears it."""
        headers = {"If-Match": etag} if etag else {}
        return Call("POST", self._thread(thread_id, "working-memory"), {}, {"workingMemory": text, **body}, headers)

    def get_observational_memory(self, thread_id: str, **query: JSONValue) -> Call:
        return Call("GET", f"{self.root}/observational-memory", {"threadId": thread_id, **query})

    def await_observations(self, thread_id: str, **body: JSONValue) -> Call:
        """Read the observations of a thread after the job that makes them, or after 30 seconds."""
        path = f"{self.root}/observational-memory/buffer-status"
        return Call("POST", path, body={"threadId": thread_id, **body}, timeout=OBSERVATION_TIMEOUT)

    def export_resource(self, resource_id: str) -> Call:
        """Start a job that writes all data of a resource. `job_file` of a client returns its JSON lines."""
        return Call("POST", f"{self.root}/resources/{joined_path(resource_id)}/export")

    def forget_resource(self, resource_id: str) -> Call:
        """Start a job that deletes all data of a resource. This cannot be undone."""
        return Call("POST", f"{self.root}/resources/{joined_path(resource_id)}/forget")
