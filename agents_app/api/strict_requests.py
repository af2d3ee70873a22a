"""Unknown names in requests that write: warnings in the response, or errors with `strict=true`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from pydantic import BaseModel
from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import UnknownName, find_unknown_below, find_unknown_names, wire_names
from agents_app.configuration.row_issues import RowCheck, adding_issues_of_row
from agents_app.configuration.schema import ConfigError, Issue, collecting_issues, validate_fields
from agents_app.configuration.unknown_in_config import find_unknown_in_config

# In a response with an agent. A caller may send an agent back as it was read.
READ_ONLY_KEYS = frozenset(
    {
        "id",
        "ownerId",
        "activeVersionId",
        "activeVersionNumber",
        "headVersionId",
        "headVersionNumber",
        "resolvedVersionId",
        "hasDraft",
        "revision",
        "createdAt",
        "updatedAt",
        "archivedAt",
        "status",
        "warnings",
    }
)
# Keys of agents in the protocol of the published client that have no effect here. Only strict requests refuse them.
UNSUPPORTED_AGENT_KEYS = frozenset(
    {
        "authorId",
        "visibility",
        "toolProviders",
        "skills",
        "workspace",
        "browser",
    }
)
UNSUPPORTED_MESSAGE = "This is not supported here and has no effect. Omit it."


class NameCheck(NamedTuple):
    """The unknown names of a request, and whether the caller wants warnings to be errors."""

    strict: bool
    unknown: Sequence[UnknownName]

    def reject_if_strict(self, unknown: Sequence[UnknownName]) -> None:
        """Raise ConfigError for names that were found later, if the caller wants warnings to be errors."""
        if self.strict and unknown:
            raise ConfigError(Issue(name.field, name.message) for name in unknown)


@contextmanager
def checking_names(
    request: Request,
    body: JSONMapping,
    *models: type[BaseModel],
    known: Collection[str] = (),
    silent: Collection[str] = (),
    unsupported: Collection[str] = (),
    parameters: Sequence[str] = (),
    inside: Sequence[UnknownName] = (),
) -> Iterator[NameCheck]:
    """Find the names of a request that nothing reads: keys of its body and query parameters.

    Args:
        models: The models of the body.
        known: The keys of a body that has no model.
        silent: More keys that are known, and have no effect.
        unsupported: Keys that only strict requests refuse.
        parameters: Query parameters besides `strict`, which the view reads itself.
        inside: Unknown names of objects in the body, which the view found itself.

    With `strict=true`, unknown names are errors, together with those that parsing inside the block raises. Raises
    BadRequest and ConfigError.
    """
    with QueryParams(request) as query:
        strict = query.boolean("strict")
        in_query = query.unknown_names(*parameters)
    known = known_keys(*models).union(known)
    in_body = [*find_in_body(body, known, {*silent, *unsupported}), *inside]
    issues: list[Issue] = []
    with collecting_issues(issues):
        yield NameCheck(strict, [*in_query, *in_body])
    if strict:
        issues += [Issue(name.field, name.message) for name in in_body]
        issues += [Issue(key, UNSUPPORTED_MESSAGE) for key in body if key in unsupported and key not in known]
    if issues:
        raise ConfigError(dict.fromkeys(issues))  # each once: several parts of a block may find the same one
    if strict and in_query:  # apart, because an error names the part of the request that it is about
        raise BadRequest("query parameters", [(name.field, name.message) for name in in_query])


def find_in_body(body: JSONMapping, known: Collection[str], ignored: Collection[str]) -> list[UnknownName]:
    """Return the unknown keys of a body, and the unknown members of the configuration of an agent."""
    names = find_unknown_names((key for key in body if key not in ignored), known)
    return names + find_unknown_in_config(body) if "model" in known else names


def check_names(request: Request, body: JSONMapping, *, parameters: Sequence[str] = ()) -> NameCheck:
    """Do what `checking_names` does for a body in which no key is known."""
    with checking_names(request, body, parameters=parameters) as names:
        return names


def read_named_fields(
    request: Request,
    body: JSONObject,
    model: type[BaseModel],
    *,
    silent: Collection[str] = (),
    check: RowCheck = lambda fields: [],
) -> tuple[JSONObject, Sequence[UnknownName]]:
    """Return the fields of a model in a body, and the unknown names of the request, also in the objects of the body.

    `check` finds what a row refuses in the fields that are valid, if others are not. Raise BadRequest and ConfigError.
    """
    inside = find_unknown_below(model, body)
    with (
        checking_names(request, body, model, silent=silent, inside=inside) as names,
        adding_issues_of_row(model, body, check),
    ):
        fields = validate_fields(model, body)
    return fields, names.unknown


@cache
def known_keys(*models: type[BaseModel]) -> frozenset[str]:
    """Return the wire names of the fields of models."""
    return frozenset[str]().union(*map(wire_names, models))


def warning_payloads(unknown: Sequence[UnknownName]) -> JSONObject:
    """Return the member `warnings` of a response, or nothing without unknown names."""
    return {"warnings": [name._asdict() for name in unknown]} if unknown else {}
