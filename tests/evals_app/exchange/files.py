"""Functions that export and import items through the API in tests."""

import json
from typing import Any
from urllib.parse import urlencode

from tests.agent_exchange import run_job
from tests.api_client import Caller

MEDIA_TYPES = {"csv": "text/csv", "json": "application/json", "jsonl": "application/x-ndjson"}


def export_items(caller: Caller, dataset_id: str, file_format: str, version: int | None = None) -> bytes:
    query = {"format": file_format, **({} if version is None else {"version": version})}
    answer = caller.client.get(f"/api/datasets/{dataset_id}/export", query)
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def send_items(caller: Caller, dataset_id: str, content: bytes | str, file_format: str, **options: Any) -> Any:
    headers = options.pop("headers", {})
    options = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in options.items()}
    path = f"/api/datasets/{dataset_id}/import?{urlencode(options)}"
    data = content.encode() if isinstance(content, str) else content
    answer = caller.client.generic("POST", path, data, content_type=MEDIA_TYPES[file_format], headers=headers)
    answer.body = answer.json()
    return answer


def import_items(caller: Caller, dataset_id: str, content: bytes | str, file_format: str, **options: Any) -> Any:
    """Import items and return the result of the job with the faults by line."""
    result = run_job(caller, send_items(caller, dataset_id, content, file_format, **options))["result"]
    records = caller.get(f"{result['report']}?perPage=1000").body["records"]
    return {**result, "faults": [(row["line"], row["reason"]) for row in records]}
