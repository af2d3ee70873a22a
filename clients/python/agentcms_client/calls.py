"""The operations of the API, each as a method that returns the request."""

from __future__ import annotations

from agentcms_client.conversations import ConversationCalls, with_id
from agentcms_client.json_types import JSONObject, JSONValue
from agentcms_client.requests import Call, joined_path

RUN_TIMEOUT = 600.0  # seconds, longer than the server lets a run take by default
STREAM_TIMEOUT = 45.0  # seconds without a byte; the server sends a heartbeat every 15
EVENT_STREAM = "text/event-stream"


def api_path(*parts: str) -> str:
    return f"/api/{joined_path(*parts)}"


def agent_path(agent_id: str, *rest: str) -> str:
    return api_path("stored", "agents", agent_id, *rest)


def identified(message: JSONValue) -> JSONObject:
    """Return a message, which may be a text or a list of parts, as an object with an ID."""
    return with_id(message if isinstance(message, dict) else {"contents": message})


class Calls(ConversationCalls):
    """One method per operation of the API. Each returns a `Call` and sends nothing."""

    def list_agents(self, **query: JSONValue) -> Call:
        return Call("GET", "/api/stored/agents", query)

    def get_agent(self, agent_id: str, **query: JSONValue) -> Call:
        return Call("GET", agent_path(agent_id), query)

    def create_agent(self, agent_id: str, **fields: JSONValue) -> Call:
        return Call("POST", "/api/stored/agents", body={"id": agent_id, **fields})

    def update_agent(self, agent_id: str, etag: str = "", **fields: JSONValue) -> Call:
        return Call("PATCH", agent_path(agent_id), body=fields, headers={"If-Match": etag} if etag else {})

    def delete_agent(self, agent_id: str, *, force: bool = False) -> Call:
        return Call("DELETE", agent_path(agent_id), {"force": force})

    def archive_agent(self, agent_id: str, *, force: bool = False) -> Call:
        return Call("POST", agent_path(agent_id, "archive"), {"force": force})

    def unarchive_agent(self, agent_id: str) -> Call:
        return Call("POST", agent_path(agent_id, "unarchive"))

    def list_deleted_agents(self, **query: JSONValue) -> Call:
        return Call("GET", api_path("stored", "deleted-agents"), query)

    def restore_deleted_agent(self, deleted_id: str, new_id: str = "") -> Call:
        """Restore an agent from the trash, by the id of its entry. `new_id` is needed if its own id is taken."""
        return Call(
            "POST", api_path("stored", "deleted-agents", deleted_id, "restore"), body={"id": new_id} if new_id else {}
        )

    def purge_deleted_agent(self, deleted_id: str) -> Call:
        """Delete an agent in the trash for good."""
        return Call("DELETE", api_path("stored", "deleted-agents", deleted_id))

    def duplicate_agent(self, agent_id: str, new_id: str, **fields: JSONValue) -> Call:
        return Call("POST", agent_path(agent_id, "duplicate"), body={"id": new_id, **fields})

    def discard_draft(self, agent_id: str) -> Call:
        return Call("POST", agent_path(agent_id, "discard-draft"))

    def undo(self, agent_id: str) -> Call:
        """Publish the previously live version."""
        return Call("POST", agent_path(agent_id, "activations", "undo"))

    def list_versions(self, agent_id: str, **query: JSONValue) -> Call:
        return Call("GET", agent_path(agent_id, "versions"), query)

    def get_version(self, agent_id: str, version_id: str) -> Call:
        return Call("GET", agent_path(agent_id, "versions", version_id))

    def create_version(self, agent_id: str, **fields: JSONValue) -> Call:
        """Save a snapshot of the head."""
        return Call("POST", agent_path(agent_id, "versions"), body=fields)

    def update_version(self, agent_id: str, version_id: str, **fields: JSONValue) -> Call:
        return Call("PATCH", agent_path(agent_id, "versions", version_id), body=fields)

    def delete_version(self, agent_id: str, version_id: str) -> Call:
        return Call("DELETE", agent_path(agent_id, "versions", version_id))

    def activate(self, agent_id: str, version_id: str) -> Call:
        """Publish a version."""
        return Call("POST", agent_path(agent_id, "versions", version_id, "activate"))

    def restore(self, agent_id: str, version_id: str, **fields: JSONValue) -> Call:
        """Create a new version with the content of an old one."""
        return Call("POST", agent_path(agent_id, "versions", version_id, "restore"), body=fields)

    def compare(self, agent_id: str, before: str = "live", after: str = "head") -> Call:
        return Call("GET", agent_path(agent_id, "versions", "compare"), {"from": before, "to": after})

    def generate(self, agent_id: str, messages: JSONValue, **body: JSONValue) -> Call:
        """Run an agent: `generate("concierge", "Hello", variables={"name": "Ann"})`. `messages` may be a text."""
        path = api_path("agents", agent_id, "generate")
        return Call("POST", path, body={"messages": messages, **body}, timeout=RUN_TIMEOUT)

    def stream(self, agent_id: str, messages: JSONValue, **body: JSONValue) -> Call:
        """Run an agent and stream its events. The clients have a method that reads them."""
        path, headers = api_path("agents", agent_id, "stream"), {"Accept": EVENT_STREAM}
        return Call("POST", path, body={"messages": messages, **body}, headers=headers, timeout=STREAM_TIMEOUT)

    def follow_run(self, run_id: str, after: int = 0) -> Call:
        """Stream the events of a run after the one with this number."""
        headers = {"Accept": EVENT_STREAM, "Last-Event-ID": str(after)}
        return Call("GET", api_path("runs", run_id, "stream"), headers=headers, timeout=STREAM_TIMEOUT)

    def send_message(self, agent_id: str, message: JSONValue, **body: JSONValue) -> Call:
        """Send a message to a thread, also while a run is active: `send_message("concierge", "Hi", threadId="t")`."""
        body = {"message": identified(message), **body}
        return Call("POST", api_path("agents", agent_id, "send-message"), body=body)

    def queue_message(self, agent_id: str, message: JSONValue, **body: JSONValue) -> Call:
        """Send a message to a thread, which gets a run of its own."""
        body = {"message": identified(message), **body}
        return Call("POST", api_path("agents", agent_id, "queue-message"), body=body)

    def send_signal(self, agent_id: str, signal: JSONObject, **body: JSONValue) -> Call:
        """Send a signal to a thread: `{"type": "notification", "contents": "The flight is late."}`."""
        body = {"signal": with_id(signal), **body}
        return Call("POST", api_path("agents", agent_id, "signals"), body=body)

    def abort_thread(self, agent_id: str, thread_id: str, **body: JSONValue) -> Call:
        """Stop the run of a thread, or only the run that `expectedRunId` names."""
        path = api_path("agents", agent_id, "threads", "abort")
        return Call("POST", path, body={"threadId": thread_id, **body})

    def follow_thread(self, agent_id: str, thread_id: str, **body: JSONValue) -> Call:
        """Stream the active run of a thread and all later ones. The clients have a method that reads them."""
        path = api_path("agents", agent_id, "threads", "subscribe")
        headers = {"Accept": EVENT_STREAM}
        return Call("POST", path, body={"threadId": thread_id, **body}, headers=headers, timeout=STREAM_TIMEOUT)

    def get_run(self, run_id: str) -> Call:
        return Call("GET", api_path("runs", run_id))

    def cancel_run(self, run_id: str) -> Call:
        return Call("POST", api_path("runs", run_id, "cancel"))

    def list_steps(self, run_id: str, **query: JSONValue) -> Call:
        """List the steps of a durable run."""
        return Call("GET", api_path("runs", run_id, "steps"), query)

    def list_approvals(self, **query: JSONValue) -> Call:
        """List the tool calls that wait for people: `list_approvals(state="decided", agentId="concierge")`."""
        return Call("GET", "/api/approvals", query)

    def get_approval(self, approval_id: str) -> Call:
        return Call("GET", api_path("approvals", approval_id))

    def decide(self, approval_id: str, decision: str, **body: JSONValue) -> Call:
        """Decide a tool call: "approve", "decline" or "resume". Members that are None are left out."""
        members = {name: value for name, value in body.items() if value is not None}
        return Call("POST", api_path("approvals", approval_id), body={"decision": decision, **members})

    def get_job(self, job_id: str) -> Call:
        return Call("GET", api_path("jobs", job_id))

    def get_job_file(self, job_id: str) -> Call:
        """Read the file that a job has written, as bytes."""
        return Call("GET", api_path("jobs", job_id, "file"), is_file=True)

    def list_jobs(self, **query: JSONValue) -> Call:
        """List your jobs without their results: `list_jobs(kind="export_agents")`."""
        return Call("GET", "/api/jobs", query)

    def list_job_records(self, job_id: str, **query: JSONValue) -> Call:
        """List the outcomes of the records of an import: `list_job_records(id, action="refuse")`."""
        return Call("GET", api_path("jobs", job_id, "records"), query)

    def delete_job(self, job_id: str) -> Call:
        """Delete a job with its file and report."""
        return Call("DELETE", api_path("jobs", job_id))


CALLS = Calls()
