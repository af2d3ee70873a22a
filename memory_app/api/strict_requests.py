"""Unknown names in the requests of conversations: warnings in the response, or errors with `strict=true`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.wire.json_types import JSONMapping, JSONObject
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agents_app.api.strict_requests import NameCheck, checking_names

# Query parameters of every route. The lookups of the thread, its resource and its agent read them.
PARAMETERS = ("agentId", "networkId", "resourceId", "threadId", "requestContext")
# What the published client sends with every body, and what a client that has read a thread sends back.
SILENT_KEYS = frozenset({"agentId", "requestContext", "id", "createdAt", "updatedAt", "warnings"})
COPY_OPTIONS = frozenset({"messageLimit", "messageFilter"})
COPY_FILTERS = frozenset({"startDate", "endDate", "messageIds"})


def checking_body(
    request: Request,
    body: JSONMapping,
    *known: str,
    parameters: Sequence[str] = (),
    inside: Sequence[UnknownName] = (),
) -> AbstractContextManager[NameCheck]:
    """Find the names of a request that nothing reads: see `checking_names`. `known` are the keys of its body."""
    read = (*PARAMETERS, *parameters)
    return checking_names(request, body, known=known, silent=SILENT_KEYS, parameters=read, inside=inside)


def check_parameters(query: QueryParams) -> list[UnknownName]:
    """Return the unknown parameters of a list, after all others were read. With `strict=true` they are faults."""
    query.names_read.update(PARAMETERS)
    return query.check_unknown_names()


def find_unknown_in_copy(body: JSONObject) -> list[UnknownName]:
    """Return the unknown names in the options of the copy of a thread."""
    options = body.get("options")
    if not isinstance(options, dict):
        return []
    criteria = options.get("messageFilter")
    inside = criteria if isinstance(criteria, dict) else {}
    return [
        *find_unknown_names(options, COPY_OPTIONS, "options"),
        *find_unknown_names(inside, COPY_FILTERS, "options.messageFilter"),
    ]
