"""Versions of agents and their live history in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.operations import AGENT, PAGING, VERSION, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.api.schemas import ChangeOptions
from versions_app.api.schemas import Description, Undo

VERSION_OPERATIONS = (
    Operation(
        "post",
        f"{AGENT}/discard-draft",
        "discardDraft",
        "Discard the draft: set the head back to the live version",
        "Agent",
        query=("strict",),
        errors=(412,),
    ),
    Operation(
        "get",
        f"{AGENT}/activations",
        "listActivations",
        "List the live history, or get the live version at a time",
        "Activations",
        query=(*PAGING, "at", "strict"),
    ),
    Operation(
        "post",
        f"{AGENT}/activations/undo",
        "undoActivation",
        "Roll back to the previously live version",
        "Agent",
        "Undo",
        ("strict",),
        errors=(409, 412),
    ),
    Operation(
        "get",
        f"{AGENT}/versions",
        "listVersions",
        "List versions",
        "VersionPage",
        query=(*PAGING, "versionOrder", "strict"),
    ),
    Operation(
        "post",
        f"{AGENT}/versions",
        "createVersion",
        "Save a snapshot of the head as a version",
        "Version",
        "VersionDescription",
        ("strict",),
        201,
        (412,),
    ),
    Operation(
        "get",
        f"{AGENT}/versions/compare",
        "compareVersions",
        "Compare two versions",
        "Comparison",
        query=("from", "to"),
    ),
    Operation("get", VERSION, "getVersion", "Get a version", "Version"),
    Operation(
        "patch",
        VERSION,
        "updateVersion",
        "Change the name, message and pin of a version",
        "Version",
        "VersionDescription",
        ("strict",),
        errors=(412,),
    ),
    Operation("delete", VERSION, "deleteVersion", "Delete a version", "Done", errors=(412,)),
    Operation(
        "post",
        f"{VERSION}/activate",
        "activateVersion",
        "Publish a version",
        "Activated",
        "ChangeOptions",
        ("strict",),
        errors=(412,),
    ),
    Operation(
        "post",
        f"{VERSION}/restore",
        "restoreVersion",
        "Restore a version: create a new one with its content",
        "Version",
        "ChangeOptions",
        ("strict",),
        errors=(412,),
    ),
)
VERSION_DESCRIPTIONS: dict[str, str] = {
    "discardDraft": "Needs the editor role. The versions of the draft stay in the history.",
    "listActivations": "The newest first. With the parameter at, the response is the version that was live then.",
    "undoActivation": "Needs the publisher role. A 409 says that the version was pruned or that the live version "
    "changed in the meantime.",
    "listVersions": "The newest first.",
    "createVersion": "Needs the editor role. Live and head do not change.",
    "compareVersions": "Takes the IDs of two versions of the agent, live or head.",
    "getVersion": "Returns the configuration under snapshot.",
    "updateVersion": "Needs the editor role. The configuration of a version never changes.",
    "deleteVersion": "Needs the publisher role. The live version cannot be deleted. Deleting the head discards the "
    "draft.",
    "activateVersion": "Needs the publisher role. Creates no version. Publishing the live version changes nothing.",
    "restoreVersion": "Publishes the new version, which needs the publisher role. With autoPublish false it is a "
    "draft, which needs the editor role.",
}
VERSION_PARAMETERS: dict[str, dict[str, JSONObject]] = {
    "listVersions": {"orderBy": {"default": {"field": "versionNumber", "direction": "DESC"}}},
}
VERSION_EXAMPLES: dict[str, JSONObject] = {
    "undoActivation": {"changeMessage": "The new version answers too slowly"},
    "createVersion": {"name": "Before the trade fair", "pinned": True},
    "updateVersion": {"name": "Summer season"},
    "activateVersion": {"changeMessage": "Approved by the editors"},
    "restoreVersion": {"autoPublish": False},
}


def version_schemas() -> dict[str, JSONObject]:
    live_at_time = object_of(
        at=DATE_TIME, versionId=UUID_STRING, versionNumber=INTEGER, kept=BOOLEAN, activation=ref("Activation")
    )
    return {
        "Version": version_schema(),
        "VersionPage": page_of("versions", "Version"),
        "Comparison": comparison_schema(),
        "Activation": activation_schema(),
        "Activations": {"anyOf": [page_of("activations", "Activation"), live_at_time]},
        "Activated": with_optional_warnings(object_of(success=BOOLEAN, message=STRING, activeVersionId=UUID_STRING)),
    }


def version_schema() -> JSONObject:
    version = object_of(
        id=UUID_STRING,
        agentId=STRING,
        versionNumber=INTEGER,
        name=STRING,
        snapshot=ref("Configuration"),
        changedFields=array_of(STRING),
        changeMessage=STRING,
        createdAt=DATE_TIME,
        author=nullable(STRING),
        source=STRING,
        basedOn=nullable(INTEGER),
        pinned=BOOLEAN,
        isActive=BOOLEAN,
        isHead=BOOLEAN,
    )
    return with_optional_warnings(version)


def comparison_schema() -> JSONObject:
    kind = {"enum": ["added", "removed", "changed"]}
    return object_of(
        diffs=array_of(object_of(field=STRING, previousValue=ANY, currentValue=ANY)),
        summary=STRING,
        details=array_of(object_of(path=STRING, kind=kind, previousValue=ANY, currentValue=ANY)),
        fromVersion=ref("Version"),
        toVersion=ref("Version"),
    )


def activation_schema() -> JSONObject:
    return object_of(
        id=INTEGER,
        fromVersionId=nullable(UUID_STRING),
        fromVersionNumber=nullable(INTEGER),
        toVersionId=UUID_STRING,
        toVersionNumber=INTEGER,
        author=nullable(STRING),
        source=STRING,
        reason=STRING,
        createdAt=DATE_TIME,
    )


VERSION_FIELDS: dict[str, str] = {
    "Version.id": "The ID of the version.",
    "Version.name": "A name that people gave the version.",
    "VersionDescription.name": "A name for the version. Null removes it.",
    "VersionDescription.changeMessage": "What changed, and why. Null removes it.",
    "Version.source": "Where the change was made: page, api, admin, import, restore, task or code.",
    "Activation.id": "The ID of the entry.",
    "Activation.source": "Where the change was made: page, api, admin, import, restore, task or code.",
    "Activation.reason": "Why, as the author wrote it.",
    "Comparison.kind": "What happened at the path.",
}


VERSION_SECTION = ApiSection(
    VERSION_OPERATIONS,
    {"/versions": "Versions", "/activations": "Live history", "": "Agents"},
    version_schemas,
    bodies={"Undo": (Undo, ChangeOptions), "VersionDescription": Description},
    descriptions=VERSION_DESCRIPTIONS,
    own_parameters=VERSION_PARAMETERS,
    page_size=20,
    examples=VERSION_EXAMPLES,
    fields=VERSION_FIELDS,
)
