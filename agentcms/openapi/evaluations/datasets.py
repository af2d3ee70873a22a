"""Datasets and their items in the API document."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    ANY,
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    PAGINATION,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    order_query,
    paged_schema,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import as_partial
from agents_app.editing.change_context import Source
from evals_app.datasets.schema import DatasetBody, ItemBody, ItemChange

DATASET = "/api/datasets/{datasetId}"
ITEM = f"{DATASET}/items/{{itemId}}"

DATASET_OPERATIONS = (
    Operation(
        "get",
        "/api/datasets",
        "listDatasets",
        "List datasets",
        "DatasetPage",
        query=(*PAGING, "datasetOrder", "targetType", "targetIds", "ownerId", "archived", "strict"),
    ),
    Operation(
        "post", "/api/datasets", "createDataset", "Create a dataset", "Dataset", "DatasetCreate", ("strict",), 201
    ),
    Operation("get", DATASET, "getDataset", "Get a dataset", "Dataset"),
    Operation("patch", DATASET, "updateDataset", "Change a dataset", "Dataset", "DatasetChange", query=("strict",)),
    Operation("delete", DATASET, "deleteDataset", "Delete a dataset with its items", "Done"),
    Operation(
        "get",
        f"{DATASET}/versions",
        "listDatasetVersions",
        "List the versions of a dataset",
        "DatasetVersionPage",
        query=(*PAGING, "strict"),
    ),
    Operation(
        "get",
        f"{DATASET}/items",
        "listDatasetItems",
        "List the items of a dataset",
        "DatasetItemPage",
        query=(*PAGING, "datasetVersion", "search", "itemOrder", "strict"),
    ),
    Operation(
        "post",
        f"{DATASET}/items",
        "addDatasetItem",
        "Add an item",
        "DatasetItem",
        "DatasetItemCreate",
        ("strict",),
        201,
    ),
    Operation(
        "post",
        f"{DATASET}/items/batch",
        "addDatasetItems",
        "Add many items as one version",
        "DatasetItems",
        "DatasetItemsCreate",
        status=201,
        query=("strict",),
    ),
    Operation(
        "delete",
        f"{DATASET}/items/batch",
        "deleteDatasetItems",
        "Delete many items as one version",
        "DatasetItemsDeleted",
        "DatasetItemIds",
    ),
    Operation("get", ITEM, "getDatasetItem", "Get an item", "DatasetItem"),
    Operation(
        "patch",
        ITEM,
        "updateDatasetItem",
        "Change an item",
        "DatasetItem",
        "DatasetItemChange",
        errors=(409,),
        query=("strict",),
    ),
    Operation("delete", ITEM, "deleteDatasetItem", "Delete an item", "Done"),
    Operation(
        "get",
        f"{ITEM}/history",
        "getDatasetItemHistory",
        "List the versions of an item",
        "DatasetItemHistory",
        query=(*PAGING, "strict"),
    ),
    Operation(
        "get", f"{ITEM}/versions/{{number}}", "getDatasetItemVersion", "Get an item at a version", "DatasetItem"
    ),
    Operation("delete", f"{ITEM}/purge", "purgeDatasetItem", "Redact an item in all versions", "Done"),
)

DATASET_DESCRIPTIONS: dict[str, str] = {
    "listDatasets": "Those of your teams and the shared ones.",
    "createDataset": "The ID comes from the name. The default owner is your only one.",
    "getDataset": "With the number of its items.",
    "getDatasetItem": "As it is at the current version.",
    "deleteDatasetItem": "Earlier versions of the dataset keep it.",
    "updateDataset": "Current items must fit a new schema.",
    "deleteDataset": "Needs the publisher role.",
    "listDatasetVersions": "The newest first. Each change of items, of one or a batch, is a version.",
    "listDatasetItems": "At the current version, or at the named one.",
    "addDatasetItem": "An item with a known externalId replaces the item that has it.",
    "addDatasetItems": "At most 5,000 at a time. All are stored or none.",
    "deleteDatasetItems": "Earlier versions keep them. IDs of other items are ignored.",
    "updateDatasetItem": "Changes the named fields. An equal change makes no version.",
    "getDatasetItemHistory": "The newest first, with the deletion.",
    "getDatasetItemVersion": "As it was at that version of the dataset.",
    "purgeDatasetItem": "Needs the publisher role. Creates no version. The admin log records it.",
}

DATASET_PARAMETERS: dict[str, JSONObject] = {
    "datasetId": {"description": "The ID of the dataset.", "example": "support-questions"},
    "itemId": {"description": "The ID of the item.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11"},
    "number": {"description": "The number of a version of the dataset.", "example": "3"},
    "version": {"description": "The number of a version of the dataset."},
    "targetType": {"description": "Only datasets for targets of this type."},
    "targetIds": {"description": "Only datasets for at least one of these targets."},
    "archived": {"description": "Archived datasets instead of the others."},
    "search": {"description": "A part of the texts of the input or the ground truth."},
}
DATASET_QUERY: dict[str, JSONObject] = {
    "datasetOrder": order_query("createdAt", "updatedAt", "name"),
    "itemOrder": order_query("createdAt", "updatedAt"),
    "datasetVersion": {"name": "version", "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}},
    "targetIds": {"schema": array_of(STRING)},
    "archived": {"schema": {**BOOLEAN, "default": False}},
}
DATASET_EXAMPLES: dict[str, JSONObject] = {
    "createDataset": {"name": "Support questions", "targetType": "agent", "targetIds": ["concierge"]},
    "updateDataset": {"scorerIds": ["exact"]},
    "addDatasetItem": {"input": "When do you open?", "groundTruth": "At nine."},
    "updateDatasetItem": {"groundTruth": "At ten."},
    "addDatasetItems": {"items": [{"input": "When do you open?", "groundTruth": "At nine.", "externalId": "q1"}]},
    "deleteDatasetItems": {"itemIds": ["01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a11"]},
}
DATASET_FIELDS: dict[str, str] = {
    "description": "What the dataset is for.",
    "Dataset.version": "The number of changes of items.",
    "datasets": "The datasets of the page.",
    "DatasetItemPage.items": "The items of the page.",
    "DatasetItemsCreate.items": "The items to add.",
    "archived": "Whether the dataset is archived.",
    "itemCount": "The number of current items.",
    "inputSchema": "The JSON Schema of inputs.",
    "groundTruthSchema": "The JSON Schema of ground truths.",
    "requestContextSchema": "The JSON Schema of request contexts.",
    "targetType": "What the dataset is for: agent, workflow or scorer.",
    "targetIds": "The IDs of the targets that the dataset is for.",
    "scorerIds": "The keys of scorers.",
    "tags": "Tags for results.",
    "datasetId": "The ID of the dataset.",
    "datasetVersion": "The version of the dataset with which this content began.",
    "externalId": "Your own ID of the item, unique in the dataset.",
    "input": "The messages or the text that the target gets.",
    "groundTruth": "The expected answer.",
    "expectedTrajectory": "The steps that are expected of the target.",
    "toolMocks": "Answers to calls of tools in place of the tools.",
    "unmockedToolPolicy": "What happens to calls without a mock: allow calls the tool, deny fails the item.",
    "validTo": "The version of the dataset with which this content ended.",
    "isDeleted": "Whether the item was deleted.",
    "history": "The versions of the item.",
    "deletedCount": "The number of deleted items.",
    "itemIds": "The IDs of items.",
    "DatasetItems.count": "The number of items.",
    "DatasetItems.items": "The items in the order of the request.",
    "DatasetVersion.added": "The number of added items.",
    "DatasetVersion.changed": "The number of changed items.",
    "DatasetVersion.deleted": "The number of deleted items.",
    "DatasetVersion.version": "The number of the version.",
    "pagination": "The position of the page.",
}


def dataset_schemas() -> dict[str, JSONObject]:
    item = item_schema()
    history = object_of(**item["properties"], validTo=nullable(INTEGER), isDeleted=BOOLEAN)
    return {
        "Dataset": dataset_schema(),
        "DatasetPage": paged_schema("datasets", "Dataset"),
        "DatasetVersion": dataset_version_schema(),
        "DatasetVersionPage": paged_schema("versions", "DatasetVersion"),
        "DatasetItem": item,
        "DatasetItemPage": paged_schema("items", "DatasetItem"),
        "DatasetItems": object_of(items=array_of(ref("DatasetItem")), count=INTEGER),
        "DatasetItemsCreate": object_of(items=array_of(ref("DatasetItemCreate"))),
        "DatasetItemIds": object_of(itemIds=array_of(STRING)),
        "DatasetItemsDeleted": object_of(success=BOOLEAN, deletedCount=INTEGER),
        "DatasetItemHistory": with_optional_warnings(object_of(history=array_of(history), pagination=PAGINATION)),
    }


def dataset_version_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        datasetId=STRING,
        version=INTEGER,
        author=nullable(STRING),
        source={"enum": Source.values},
        added=INTEGER,
        changed=INTEGER,
        deleted=INTEGER,
        createdAt=DATE_TIME,
    )


def dataset_schema() -> JSONObject:
    schema = object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        ownerId=STRING,
        metadata=OBJECT,
        tags=array_of(STRING),
        targetType=nullable(STRING),
        targetIds=array_of(STRING),
        scorerIds=array_of(STRING),
        version=INTEGER,
        itemCount=INTEGER,
        archivedAt=nullable(DATE_TIME),
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
    )
    schema["properties"] |= dict.fromkeys(("inputSchema", "groundTruthSchema", "requestContextSchema"), OBJECT)
    return schema


def item_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        datasetId=STRING,
        datasetVersion=INTEGER,
        externalId=nullable(STRING),
        input=ANY,
        groundTruth=ANY,
        expectedTrajectory=nullable(OBJECT),
        toolMocks=nullable(array_of(OBJECT)),
        unmockedToolPolicy={"enum": ["allow", "deny"]},
        scorerIds=nullable(array_of(STRING)),
        requestContext=nullable(OBJECT),
        metadata=nullable(OBJECT),
        source=nullable(OBJECT),
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
    )


DATASET_SECTION = ApiSection(
    DATASET_OPERATIONS,
    {"": "Evaluations"},
    dataset_schemas,
    bodies={
        "DatasetCreate": DatasetBody,
        "DatasetChange": as_partial(DatasetBody),
        "DatasetItemCreate": ItemBody,
        "DatasetItemChange": ItemChange,
    },
    descriptions=DATASET_DESCRIPTIONS,
    parameters=DATASET_PARAMETERS,
    page_sizes={"listDatasetVersions": 20},
    query=DATASET_QUERY,
    examples=DATASET_EXAMPLES,
    fields=DATASET_FIELDS,
)
