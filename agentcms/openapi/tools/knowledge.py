"""Knowledge bases and vectors in the API document: operations, schemas and descriptions."""

from __future__ import annotations

from agentcms.openapi.json_schema import (
    BOOLEAN,
    DATE_TIME,
    INTEGER,
    JSON,
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
from agentcms.openapi.operations import PAGING, Operation
from agentcms.openapi.runs.runs import NUMBER
from agentcms.openapi.section import ApiSection
from agents_app.configuration.schema import as_partial
from knowledge_app.api.schemas import (
    CreateIndexBody,
    DocumentBody,
    KnowledgeBaseBody,
    SearchBody,
    UpsertBody,
    VectorQueryBody,
)
from knowledge_app.models import Document

KNOWLEDGE_PATH = "/api/knowledge/{baseId}"
VECTOR_PATH = "/api/vector/{vectorId}"

KNOWLEDGE_OPERATIONS = (
    Operation(
        "get",
        "/api/knowledge",
        "listKnowledgeBases",
        "List knowledge bases",
        "KnowledgeBasePage",
        query=(*PAGING, "ownerId", "strict"),
    ),
    Operation(
        "post",
        "/api/knowledge",
        "createKnowledgeBase",
        "Create a knowledge base",
        "KnowledgeBase",
        "KnowledgeBaseCreate",
        query=("strict",),
        status=201,
        errors=(409,),
    ),
    Operation("get", KNOWLEDGE_PATH, "getKnowledgeBase", "Get a knowledge base", "KnowledgeBase"),
    Operation(
        "patch",
        KNOWLEDGE_PATH,
        "updateKnowledgeBase",
        "Change a knowledge base",
        "KnowledgeBase",
        "KnowledgeBaseChange",
        query=("strict",),
    ),
    Operation("delete", KNOWLEDGE_PATH, "deleteKnowledgeBase", "Delete a knowledge base with its documents", "Done"),
    Operation(
        "post",
        f"{KNOWLEDGE_PATH}/search",
        "searchKnowledgeBase",
        "Search a knowledge base",
        "KnowledgeResults",
        "KnowledgeSearch",
        query=("strict",),
    ),
    Operation(
        "post", f"{KNOWLEDGE_PATH}/reindex", "reindexKnowledgeBase", "Index all documents again", "Job", status=202
    ),
    Operation(
        "get",
        f"{KNOWLEDGE_PATH}/documents",
        "listDocuments",
        "List the documents of a knowledge base",
        "DocumentPage",
        query=(*PAGING, "status", "strict"),
    ),
    Operation(
        "post",
        f"{KNOWLEDGE_PATH}/documents",
        "addDocument",
        "Add a document",
        "Document",
        "DocumentCreate",
        query=("strict",),
        status=201,
        errors=(422,),
    ),
    Operation(
        "get",
        f"{KNOWLEDGE_PATH}/documents/{{documentId}}",
        "getDocument",
        "Get a document with its text",
        "DocumentText",
    ),
    Operation("delete", f"{KNOWLEDGE_PATH}/documents/{{documentId}}", "deleteDocument", "Delete a document", "Done"),
    Operation("get", "/api/vectors", "listVectors", "List knowledge bases as vector stores", "VectorStores"),
    Operation("get", "/api/embedders", "listEmbedders", "List the embedders that run on the server", "Embedders"),
    Operation(
        "get", f"{VECTOR_PATH}/indexes", "listVectorIndexes", "List the indexes of a knowledge base", "IndexNames"
    ),
    Operation("get", f"{VECTOR_PATH}/indexes/{{indexId}}", "getVectorIndex", "Get an index", "VectorIndex"),
    Operation(
        "delete",
        f"{VECTOR_PATH}/indexes/{{indexId}}",
        "deleteVectorIndex",
        "Delete an index of own vectors",
        "Success",
        errors=(409,),
    ),
    Operation(
        "post",
        f"{VECTOR_PATH}/create-index",
        "createVectorIndex",
        "Create an index for own vectors",
        "Success",
        "VectorIndexCreate",
        query=("strict",),
        errors=(409,),
    ),
    Operation(
        "post",
        f"{VECTOR_PATH}/upsert",
        "upsertVectors",
        "Store own vectors",
        "VectorIds",
        "VectorUpsert",
        query=("strict",),
        errors=(422,),
    ),
    Operation(
        "post",
        f"{VECTOR_PATH}/query",
        "queryVectors",
        "Search an index by a vector",
        "VectorMatches",
        "VectorQuery",
        query=("strict",),
    ),
)

KNOWLEDGE_DESCRIPTIONS = {
    "listKnowledgeBases": "Those of your teams and the shared ones.",
    "createKnowledgeBase": "Publishers create knowledge bases of their teams.",
    "getKnowledgeBase": "With the numbers of its documents and chunks.",
    "updateKnowledgeBase": "Another embedder or chunk size builds another index, which then replaces this one.",
    "deleteKnowledgeBase": "Agents that search it run without it.",
    "searchKnowledgeBase": "The passages that fit a question best, with scores and places.",
    "reindexKnowledgeBase": "Starts a job. It fetches documents by URL, and embeds only texts without a vector.",
    "listDocuments": "By name.",
    "addDocument": "A text with a name, a URL, or files as multipart/form-data. One of the same name is replaced.",
    "getDocument": "The text is what was extracted from the content.",
    "deleteDocument": "Deletes its chunks and their vectors at once.",
    "listVectors": "In the form of the published client: the name of a store is the ID of a knowledge base.",
    "listEmbedders": "Those of model providers are named provider/model and not listed.",
    "listVectorIndexes": "The index of the documents has the ID of the knowledge base.",
    "getVectorIndex": "Its dimension, metric and number of vectors.",
    "deleteVectorIndex": "The index of the documents cannot be deleted.",
    "createVectorIndex": "Repeating it does nothing.",
    "upsertVectors": "Vectors with a known ID are replaced. Among the documents each needs metadata.text.",
    "queryVectors": "Answers with a list, the best first.",
}

KNOWLEDGE_PARAMETERS: dict[str, JSON] = {
    "baseId": {"description": "The ID of the knowledge base.", "example": "handbook"},
    "documentId": {
        "description": "The ID of the document.",
        "example": "0190b3c4-6a3e-7000-8000-5b0c8d6f1a2b",
    },
    "vectorId": {"description": "The ID of the knowledge base.", "example": "handbook"},
    "indexId": {"description": "The name of the index.", "example": "handbook"},
    "status": {
        "schema": {"enum": ["all", *Document.Status.values], "default": "all"},
        "description": "Only documents in this state.",
    },
}

KNOWLEDGE_EXAMPLES: dict[str, JSON] = {
    "createKnowledgeBase": {"id": "handbook", "name": "Handbook", "filterable": ["product"]},
    "updateKnowledgeBase": {"name": "Manual"},
    "searchKnowledgeBase": {"query": "How do I reset the router?", "topK": 3, "filter": {"product": "router"}},
    "addDocument": {"name": "Reset", "text": "# Reset\n\nHold the button.", "metadata": {"product": "router"}},
    "createVectorIndex": {"indexName": "own", "dimension": 3, "metric": "cosine"},
    "upsertVectors": {"indexName": "own", "vectors": [[0.1, 0.2, 0.3]], "metadata": [{"product": "router"}]},
    "queryVectors": {"indexName": "own", "queryVector": [0.1, 0.2, 0.3], "topK": 5},
}


def knowledge_schemas() -> dict[str, JSON]:
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


def vector_schemas() -> dict[str, JSON]:
    return {
        "VectorStores": object_of(
            vectors=array_of(object_of(id=STRING, name=STRING, type=STRING, description=STRING))
        ),
        "Embedders": object_of(embedders=array_of(object_of(id=STRING, provider=STRING, name=STRING))),
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


def base_schema() -> JSON:
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


def document_schema() -> JSON:
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


KNOWLEDGE_FIELDS: dict[str, str] = {
    "KnowledgeBase.id": "The ID of the knowledge base.",
    "KnowledgeBase.name": "The name of the knowledge base.",
    "KnowledgeBase.description": "Tells models when to search it.",
    "KnowledgeBaseCreate.id": "The ID: lowercase letters, digits and '-'.",
    "KnowledgeBaseCreate.name": "The name of the knowledge base.",
    "KnowledgeBaseCreate.description": "Tells models when to search it.",
    "KnowledgeBaseChange.id": "The ID, which cannot be changed.",
    "KnowledgeBaseChange.name": "The name of the knowledge base.",
    "KnowledgeBaseChange.description": "Tells models when to search it.",
    "Document.id": "The ID of the document.",
    "Document.name": "The name of the document, unique in its knowledge base.",
    "Document.url": "The URL from which it is fetched.",
    "Document.hash": "The SHA-256 of the content.",
    "Document.status": "Whether it is indexed.",
    "DocumentText.id": "The ID of the document.",
    "DocumentText.name": "The name of the document, unique in its knowledge base.",
    "DocumentText.url": "The URL from which it is fetched.",
    "DocumentText.hash": "The SHA-256 of the content.",
    "DocumentText.status": "Whether it is indexed.",
    "DocumentText.text": "The extracted text.",
    "DocumentCreate.name": "The name of the document.",
    "DocumentCreate.text": "The text, which may have Markdown.",
    "DocumentCreate.url": "The URL of a document.",
    "DocumentCreate.metadata": "Values of filterable keys and others.",
    "KnowledgeSearch.query": "The question.",
    "KnowledgeSearch.topK": "The most passages.",
    "KnowledgeSearch.filter": "A filter by metadata.",
    "KnowledgeResult.text": "The passage.",
    "KnowledgeResult.score": "The similarity to the question, at most 1.",
    "KnowledgeResult.document": "The name of the document.",
    "KnowledgeResult.url": "The URL of the document.",
    "KnowledgeResult.place": "The heading or page in the document.",
    "KnowledgeResult.start": "The position in the text of the document at which the passage begins.",
    "KnowledgeResult.end": "The position at which it ends.",
    "KnowledgeResults.results": "The passages, the best first.",
    "VectorStores.vectors": "The knowledge bases.",
    "VectorStores.id": "The ID of the knowledge base.",
    "VectorStores.name": "The ID of the knowledge base.",
    "VectorStores.type": "Always knowledge.",
    "VectorStores.description": "The description of the knowledge base.",
    "Embedders.embedders": "The embedders.",
    "Embedders.id": "The name of the embedder.",
    "Embedders.provider": "Always local.",
    "Embedders.name": "What it is.",
    "VectorIndex.dimension": "The length of its vectors, or 0 if it has none yet.",
    "VectorIndex.count": "The number of its vectors.",
    "VectorIndex.metric": "Always cosine.",
    "VectorIndexCreate.indexName": "The name of the index.",
    "VectorIndexCreate.dimension": "The length of its vectors.",
    "VectorIndexCreate.metric": "Only cosine is supported.",
    "VectorUpsert.indexName": "The name of the index.",
    "VectorUpsert.vectors": "The vectors.",
    "VectorUpsert.metadata": "The metadata of each vector.",
    "VectorUpsert.ids": "The ID of each vector. New ones if they are missing.",
    "VectorIds.ids": "The IDs of the vectors, in their order.",
    "VectorQuery.indexName": "The name of the index.",
    "VectorQuery.queryVector": "The vector.",
    "VectorQuery.topK": "The most results.",
    "VectorQuery.filter": "A filter by metadata.",
    "VectorQuery.includeVector": "Whether results have their vectors.",
    "VectorMatches.id": "The ID of the vector.",
    "VectorMatches.score": "The similarity, at most 1.",
    "VectorMatches.metadata": "Its metadata, with the text.",
    "VectorMatches.document": "The name of the document.",
    "VectorMatches.vector": "The vector, if it was asked for.",
    "Success.success": "Always true.",
    "embedder": "The model that makes vectors of texts.",
    "chunkSize": "The most characters of a chunk.",
    "chunkOverlap": "Characters that a chunk may share with the one before it.",
    "filterable": "Keys of metadata by which searches may be filtered.",
    "rerank": "The key of a function that sorts results again.",
    "documentCount": "The number of documents.",
    "chunkCount": "The number of chunks.",
    "isRebuilding": "Whether another index is built for changed settings.",
    "mediaType": "The format.",
    "size": "The size of the content in bytes.",
    "indexedAt": "When it was indexed.",
    "documents": "The documents of the page.",
    "KnowledgeBasePage.knowledge": "The knowledge bases of the page.",
    "documentId": "The ID of the document.",
}

KNOWLEDGE_SECTION = ApiSection(
    KNOWLEDGE_OPERATIONS,
    {"": "Knowledge"},
    knowledge_schemas,
    bodies={
        "KnowledgeBaseCreate": KnowledgeBaseBody,
        "KnowledgeBaseChange": as_partial(KnowledgeBaseBody),
        "KnowledgeSearch": SearchBody,
        "DocumentCreate": DocumentBody,
        "VectorIndexCreate": CreateIndexBody,
        "VectorUpsert": UpsertBody,
        "VectorQuery": VectorQueryBody,
    },
    required_bodies=frozenset(
        {"KnowledgeBaseCreate", "KnowledgeSearch", "VectorIndexCreate", "VectorQuery", "VectorUpsert"}
    ),
    descriptions=KNOWLEDGE_DESCRIPTIONS,
    parameters=KNOWLEDGE_PARAMETERS,
    examples=KNOWLEDGE_EXAMPLES,
    fields=KNOWLEDGE_FIELDS,
)
