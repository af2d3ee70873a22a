"""Export, import and jobs in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    DATE_TIME,
    INTEGER,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
)
from agentcms.openapi.operations import JOB, PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from versions_app.exchange.records import ACTIONS

EXCHANGE_OPERATIONS = (
    Operation(
        "post",
        "/api/stored/agent-export",
        "exportAgents",
        "Export agents as JSON Lines",
        "Job",
        status=202,
        query=("strict",),
    ),
    Operation(
        "post",
        "/api/stored/agent-import",
        "importAgents",
        "Import agents from JSON Lines",
        "Job",
        "Lines",
        ("dryRun", "publish", "strict", "name"),
        202,
        (413,),
    ),
    Operation(
        "get",
        "/api/jobs",
        "listJobs",
        "List the jobs that you requested, newest first",
        "JobPage",
        query=(*PAGING, "kind", "strict"),
    ),
    Operation("get", JOB, "getJob", "Get the progress and result of a job", "Job"),
    Operation("delete", JOB, "deleteJob", "Delete a job with its file and report", "Done", errors=(409,)),
    Operation("get", f"{JOB}/file", "getJobFile", "Download the file of an export", "Lines"),
    Operation(
        "get",
        f"{JOB}/records",
        "listJobRecords",
        "List the outcomes of the records of an import",
        "RecordPage",
        query=(*PAGING, "recordAction", "strict"),
    ),
)
EXCHANGE_DESCRIPTIONS: dict[str, str] = {
    "exportAgents": "Starts a job. Its file has one line for each agent that you may see.",
    "importAgents": "Needs the publisher role for the owners in the file. Starts a job; dryRun only checks the lines.",
    "listJobs": "Exports, imports and other work, such as experiments, without their results.",
    "getJob": "Repeat the request until state is done or failed.",
    "deleteJob": "A running job cannot be deleted. Of other work than exports and imports, only a finished one can.",
    "getJobFile": "Exists as soon as the job is done.",
    "listJobRecords": "One record for each line of the file, with the reason if it was not imported.",
}
LINES_EXAMPLE = (
    '{"id": "greeter", "agent": {"name": "Greeter", "instructions": "Greet the guest.", '
    '"model": {"provider": "demo", "name": "echo"}}}\n'
)


def exchange_schemas() -> dict[str, JSONObject]:
    return {
        "Lines": {"type": "string", "description": "One JSON object on each line."},
        "Job": job_schema(),
        "ListedJob": listed_job_schema(),
        "JobPage": page_of("jobs", "ListedJob"),
        "Record": record_schema(),
        "RecordPage": page_of("records", "Record"),
    }


def job_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        kind=STRING,
        state={"enum": ["queued", "running", "done", "failed"]},
        done=INTEGER,
        total=nullable(INTEGER),
        result=ANY,
        error=nullable(STRING),
        createdAt=DATE_TIME,
        startedAt=nullable(DATE_TIME),
        finishedAt=nullable(DATE_TIME),
    )


def listed_job_schema() -> JSONObject:
    fields = {name: field for name, field in job_schema()["properties"].items() if name not in ("result", "error")}
    return object_of(**fields, fileBytes=INTEGER, reportBytes=INTEGER)


def record_schema() -> JSONObject:
    """Return the schema of the outcome of a record of an import."""
    schema = object_of(line=INTEGER, action={"enum": [*ACTIONS]})
    schema["properties"] |= {"id": STRING, "reason": STRING, "code": STRING, "warnings": array_of(ref("Warning"))}
    return schema


EXCHANGE_FIELDS: dict[str, str] = {
    "Job.done": "Records or agents that are done.",
    "Job.total": "Records or agents in total, as soon as it is known.",
    "Job.error": "Why the job failed.",
    "ListedJob.done": "Records or agents that are done.",
    "ListedJob.total": "Records or agents in total, as soon as it is known.",
    "Record.id": "The ID of the agent on the line.",
    "Record.reason": "Why the line was not imported.",
}


EXCHANGE_SECTION = ApiSection(
    EXCHANGE_OPERATIONS,
    {"": "Export and import"},
    exchange_schemas,
    descriptions=EXCHANGE_DESCRIPTIONS,
    page_sizes={"listJobs": 50},
    examples={"importAgents": LINES_EXAMPLE},
    fields=EXCHANGE_FIELDS,
)
