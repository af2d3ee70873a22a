"""Schemas of the bodies about knowledge bases."""

from __future__ import annotations

from typing import Annotated, Literal

from django.core.exceptions import ValidationError
from pydantic import BaseModel, Field

from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import to_wire
from agents_app.configuration.fields.types import Name, OwnerId, SimilarityScore
from agents_app.configuration.schema import WIRE_CONFIG, Issue, as_partial
from knowledge_app.models import KnowledgeBase
from knowledge_app.search.retrieval import MAX_QUERY_LENGTH, MAX_TOP_K

MAX_DIMENSIONS = 4096
MAX_VECTORS = 1000  # of one request


# Types and the names of teams only: `apply_base` validates the rest by the model, as the form does.
class KnowledgeBaseBody(BaseModel):
    """A knowledge base. The ID and the owner cannot be changed later."""

    model_config = WIRE_CONFIG

    id: str
    name: Name
    description: Annotated[str, Field(max_length=2000)] | None = None
    owner_id: OwnerId | None = None
    embedder: str | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    filterable: list[str] | None = None
    rerank: str | None = None


class DocumentBody(BaseModel):
    """A document as a text with a name, or by its URL."""

    model_config = WIRE_CONFIG

    name: str | None = None
    text: str | None = None
    url: str | None = None
    metadata: JSONObject | None = None


class SearchBody(BaseModel):
    """A search of a knowledge base."""

    model_config = WIRE_CONFIG

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_LENGTH)]
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] | None = None
    filter: JSONObject | None = None
    min_score: SimilarityScore | None = None


Numbers = Annotated[list[float], Field(min_length=1, max_length=MAX_DIMENSIONS)]


class CreateIndexBody(BaseModel):
    """An index for vectors that the caller computes."""

    model_config = WIRE_CONFIG

    index_name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    dimension: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)]
    metric: Literal["cosine", "euclidean", "dotproduct"] | None = None


class UpsertBody(BaseModel):
    """Vectors with their metadata. Those with a known ID replace the stored ones."""

    model_config = WIRE_CONFIG

    index_name: str
    vectors: Annotated[list[Numbers], Field(min_length=1, max_length=MAX_VECTORS)]
    metadata: Annotated[list[JSONObject], Field(max_length=MAX_VECTORS)] | None = None
    ids: Annotated[list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=MAX_VECTORS)] | None = (
        None
    )


class VectorQueryBody(BaseModel):
    """A search by a vector."""

    model_config = WIRE_CONFIG

    index_name: str
    query_vector: Numbers
    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    filter: JSONObject | None = None
    min_score: SimilarityScore | None = None
    include_vector: bool | None = None


BASE_CHANGE = as_partial(KnowledgeBaseBody)


def remove_fixed(fields: JSONObject, base: KnowledgeBase) -> list[Issue]:
    """Remove the ID and the owner from the fields of a change. Return what is wrong with other ones."""
    fixed = {"id": base.key, "owner_id": base.owner_id}
    message = "This cannot be changed. Create another knowledge base."
    # Null is the default of the owner, which is a blank text.
    return [Issue(to_wire(name), message) for name, value in fixed.items() if (fields.pop(name, value) or "") != value]


def base_issues(base: KnowledgeBase, fields: JSONObject) -> list[Issue]:
    """Set the fields of a change on a base. Return what is wrong with it."""
    return [*remove_fixed(fields, base), *apply_base(base, fields)]


def apply_base(base: KnowledgeBase, fields: JSONObject) -> list[Issue]:
    """Set the fields of a body on a base. Return what is wrong with it."""
    empty = KnowledgeBase()
    for name, value in fields.items():
        column = "key" if name == "id" else name
        # Null means the default of the column.
        setattr(base, column, getattr(empty, column) if value is None else value)
    try:
        base.full_clean()
    except ValidationError as error:
        items = error.message_dict.items()
        return [Issue("id" if name == "key" else to_wire(name), text) for name, texts in items for text in texts]
    return []
