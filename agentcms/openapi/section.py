"""A part of the OpenAPI document: the operations of one subject with their texts and schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from agentcms.openapi.operations import Operation
from agentcms.wire.json_types import JSONObject

Models = type[BaseModel] | tuple[type[BaseModel], ...]


@dataclass(frozen=True)
class ApiSection:
    """The operations of one subject.

    `subjects` are the headings of the reference by a part of the path; the first part that the path contains decides.
    `schemas` returns the schemas of bodies and responses by name, and `bodies` are those that come from one or several
    models. Texts and examples are by the ID of the operation. `parameters` describes parameters of all operations by
    name, and `own_parameters` those of one operation by its ID. `page_size` is the default size of pages, and
    `page_sizes` has the exceptions by ID of operation. `query` describes query parameters by their name in the
    operations, and `fields` describes fields by name or by schema and name.
    """

    operations: tuple[Operation, ...]
    subjects: Mapping[str, str]
    schemas: Callable[[], dict[str, JSONObject]] = dict
    bodies: Mapping[str, Models] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, JSONObject] = field(default_factory=dict)
    own_parameters: Mapping[str, Mapping[str, JSONObject]] = field(default_factory=dict)
    page_size: int = 100
    page_sizes: Mapping[str, int] = field(default_factory=dict)
    query: Mapping[str, JSONObject] = field(default_factory=dict)
    examples: Mapping[str, str | JSONObject] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
