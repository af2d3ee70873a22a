"""Exports and imports through the API, with their jobs."""

import json
from typing import Any

from jobs_app.runner import run_claimed
from tests.api_client import MODEL, Caller

EXPORT, IMPORT = "/api/stored/agent-export", "/api/stored/agent-import"


def run_job(caller: Caller, started: Any) -> dict[str, Any]:
    """Run the job and return its body."""
    assert (started.status_code, started.body["state"]) in ((202, "queued"), (200, "done")), started.body
    run_claimed(started.body["id"])
    job = caller.get(f"/api/jobs/{started.body['id']}").body
    assert job["state"] == "done", job["error"]
    return job


def export(caller: Caller) -> tuple[bytes, dict[str, Any]]:
    job = run_job(caller, caller.post(EXPORT))
    answer = caller.client.get(job["result"]["file"])
    return b"".join(answer.streaming_content), job


def import_records(caller: Caller, content: Any, query: str = "", **headers: str) -> Any:
    content = content if isinstance(content, bytes) else "\n".join(map(json.dumps, content)).encode()
    answer = caller.client.generic(
        "POST", f"{IMPORT}?name=agents.jsonl{query}", content, content_type="application/x-ndjson", headers=headers
    )
    answer.body = answer.json()
    return answer


def import_file(caller: Caller, content: Any, query: str = "") -> dict[str, Any]:
    """Import a file and return the result of the job with the records of its report."""
    result = run_job(caller, import_records(caller, content, query))["result"]
    return {**result, "records": caller.get(f"{result['report']}?perPage=1000").body["records"]}


def record(agent_id: str, **fields: Any) -> dict[str, Any]:
    fields = {"name": "X", "instructions": "", "model": MODEL, **fields}
    return {"id": agent_id, "ownerId": "", "agent": fields}
