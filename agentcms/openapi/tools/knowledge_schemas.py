"""The schemas of knowledge bases, their documents and searches."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    OBJECT,
    STRING,
    UUID_STRING,
    array_of,
    nullable,
    object_of,
    page_of,
    ref,
    with_optional_warnings,
)
from agentcms.openapi.runs.run_schemas import NUMBER
from agentcms.wire.json_types import JSONObject
from knowledge_app.models import Document


def knowledge_schemas() -> dict[str, JSONObject]:
    document = with_optional_warnings(document_schema())
    return {
        "KnowledgeBase": with_optional_warnings(base_schema()),
        "KnowledgeBasePage": page_of("knowledge", "KnowledgeBase"),
        "Document": document,
        "DocumentText": {**document, "properties": {**document["properties"], "text": STRING}},
        "DocumentPage": page_of("documents", "Document"),
        "KnowledgeResults": with_optional_warnings(object_of(results=array_of(ref("KnowledgeResult")))),
        "KnowledgeResult": object_of(
            text=STRING,
            score=NUMBER,
            document=STRING,
            documentId=nullable(UUID_STRING),
            url=nullable(STRING),
            place=STRING,
            start=INTEGER,
            end=INTEGER,
            metadata=OBJECT,
        ),
        **vector_schemas(),
        "Success": with_optional_warnings(object_of(success=BOOLEAN)),
    }


def vector_schemas() -> dict[str, JSONObject]:
    return {
        "VectorStores": object_of(
            vectors=array_of(object_of(id=STRING, name=STRING, type=STRING, description=STRING))
        ),
        "Embedders": object_of(
            embedders=array_of(
                object_of(id=STRING, provider=STRING, name=STRING, description=STRING, dimensions=INTEGER)
            )
        ),
        "IndexNames": array_of(STRING),
        "VectorIndex": object_of(dimension=INTEGER, count=INTEGER, metric={"enum": ["cosine"]}),
        "VectorIds": with_optional_warnings(object_of(ids=array_of(STRING))),
        "VectorMatches": array_of(
            {
                **object_of(id=STRING, score=NUMBER, metadata=OBJECT, document=STRING, vector=array_of(NUMBER)),
                "required": ["id", "score", "metadata", "document"],
            }
        ),
    }


def base_schema() -> JSONObject:
    return object_of(
        id=STRING,
        name=STRING,
        description=STRING,
        ownerId=STRING,
        embedder=STRING,
        chunkSize=INTEGER,
        chunkOverlap=INTEGER,
        filterable=array_of(STRING),
        rerank=nullable(STRING),
        documentCount=INTEGER,
        chunkCount=INTEGER,
        isRebuilding=BOOLEAN,
        createdAt=DATE_TIME,
        updatedAt=DATE_TIME,
    )


def document_schema() -> JSONObject:
    return object_of(
        id=UUID_STRING,
        name=STRING,
        source={"enum": Document.Source.values},
        url=nullable(STRING),
        mediaType=nullable(STRING),
        hash=nullable(STRING),
        size=INTEGER,
        metadata=OBJECT,
        status={"enum": Document.Status.values},
        error=nullable(STRING),
        chunkCount=INTEGER,
        createdAt=DATE_TIME,
        indexedAt=nullable(DATE_TIME),
    )
