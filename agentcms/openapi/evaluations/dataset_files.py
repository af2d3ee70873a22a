"""Files of items, runs that become items, and what is not supported of datasets, in the API document."""

from __future__ import annotations

from agentcms.openapi.evaluations.datasets import DATASET
from agentcms.openapi.operations import Operation
from agentcms.openapi.section import ApiSection
from agentcms.wire.json_types import JSONObject
from evals_app.api.from_runs import RunItemBody
from evals_app.exchange.formats import FileFormat

FILE_OPERATIONS = (
    Operation(
        "get",
        f"{DATASET}/export",
        "exportDatasetItems",
        "Download the items of a dataset",
        "ItemLines",
        query=("fileFormat", "datasetVersion", "strict"),
    ),
    Operation(
        "post",
        f"{DATASET}/import",
        "importDatasetItems",
        "Import a file of items",
        "Job",
        "ItemLines",
        ("fileFormat", "fileName", "columns", "strict"),
        202,
        (413,),
    ),
    Operation(
        "post",
        "/api/runs/{runId}/add-to-dataset",
        "addRunToDataset",
        "Add a run to a dataset",
        "DatasetItem",
        "RunItemCreate",
        status=201,
        query=("strict",),
    ),
    Operation(
        "post",
        f"{DATASET}/generate-items",
        "generateDatasetItems",
        "Not supported: generate items",
        "Anything",
        errors=(501,),
    ),
    Operation(
        "post",
        "/api/datasets/cluster-failures",
        "clusterFailures",
        "Not supported: cluster failures",
        "Anything",
        errors=(501,),
    ),
)

FILE_DESCRIPTIONS: dict[str, str] = {
    "exportDatasetItems": "At the current version, or at the named one. An import of the file creates equal items.",
    "importDatasetItems": "CSV, a JSON array or JSON Lines, as the body or as a file of multipart/form-data. Starts a "
    "job, which checks every row and stores all items or none. Its records name the lines with errors.",
    "addRunToDataset": "The input is that of the run and the ground truth its answer, unless you send others. Only "
    "runs that you may read.",
    "generateDatasetItems": "Always answers 501. Import a file, or add runs.",
    "clusterFailures": "Always answers 501. List the failed results of an experiment.",
}

FILE_PARAMETERS: dict[str, JSONObject] = {
    "datasetId": {"description": "The ID of the dataset.", "example": "support-questions"},
    "runId": {"description": "The ID of the run.", "example": "01912d6e-6f7a-7b1a-9c39-3d7f2f5d8a10"},
    "version": {"description": "The number of a version of the dataset."},
    "format": {"description": "The format of the file. An import derives it from the name and the Content-Type."},
    "name": {"description": "The name of the file, which is kept as the source of the items."},
    "columns": {
        "description": "Of CSV, a JSON object: the name of each column with its field, a key such as metadata.topic, "
        "or null to leave it out. Without it, columns have the names of fields.",
    },
}


def file_schemas() -> dict[str, JSONObject]:
    text = "One item on each line. CSV and a JSON array are also supported."
    return {"ItemLines": {"type": "string", "description": text}}


DATASET_FILE_SECTION = ApiSection(
    FILE_OPERATIONS,
    {"": "Evaluations"},
    file_schemas,
    bodies={"RunItemCreate": RunItemBody},
    descriptions=FILE_DESCRIPTIONS,
    parameters=FILE_PARAMETERS,
    query={
        "fileFormat": {"name": "format", "schema": {"enum": FileFormat.values}},
        "fileName": {"name": "name"},
    },
    examples={
        "addRunToDataset": {"datasetId": "support-questions", "groundTruth": "At nine.", "includeToolMocks": True},
        "importDatasetItems": '{"input": "When do you open?", "groundTruth": "At nine."}\n',
    },
    fields={
        "includeToolMocks": "Whether the calls of tools become mocks.",
        "includeTrajectory": "Whether the calls of tools become the expected trajectory.",
        "RunItemCreate.datasetId": "The ID of the dataset.",
        "RunItemCreate.externalId": "Your own ID of the item, unique in the dataset.",
    },
)
