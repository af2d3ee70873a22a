"""The runs of a resource, whose data they are, and their calls that waited for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from memory_app.realms import resource_digest, user_realm
from runs_app.models import AgentRun, PendingCall
from runs_app.models.run_queryset import AgentRunQuerySet

OWN_REALM_PATTERN = re.compile("u([0-9]{1,18})")


def user_of(realm: str, key: str) -> int | None:
    """Return the user whose own resource this is, or None."""
    match = OWN_REALM_PATTERN.fullmatch(realm) if realm == key else None
    return int(match[1]) if match is not None else None


def run_queries(realm: str, key: str) -> Iterator[QuerySet[AgentRun]]:
    """Yield the runs of a resource, those of its threads, and those without either.

    The last ones belong to the user who asked for them, as all that names no resource. Each query has an index.
    """
    yield AgentRun.objects.filter(resource__realm=realm, resource__key=key)
    yield AgentRun.objects.filter(thread__realm=realm, thread__resource_key=key)
    if (user_id := user_of(realm, key)) is not None:
        unnamed = Q(resource=None, thread=None, experiment_id=None, parent=None, realm_owner=None)
        yield AgentRun.objects.filter(unnamed, requested_by=user_id)


def runs_of(realm: str, key: str) -> AgentRunQuerySet:
    """Return the runs of a resource, with those of its threads."""
    runs: AgentRunQuerySet = in_any(AgentRun, *run_queries(realm, key))
    return runs


def calls_of(realm: str, key: str) -> QuerySet[PendingCall]:
    """Return the calls of a resource that waited for people. Those of deleted runs are known by a hash."""
    runs = runs_of(realm, key).order_by().values("pk")
    calls = PendingCall.objects.order_by()
    of_resource = calls.filter(resource_digest=resource_digest(realm, key))
    matches: QuerySet[PendingCall] = in_any(
        PendingCall, of_resource, calls.filter(run__in=runs), calls.filter(root_id__in=runs)
    )
    return matches


def in_any(model: Any, first: QuerySet[Any], *others: QuerySet[Any]) -> Any:
    """Return the rows that one of several queries finds. A condition with OR would read the whole table."""
    keys = [query.order_by().values("pk") for query in (first, *others)]
    return model._default_manager.filter(pk__in=keys[0].union(*keys[1:]))


def resource_of_run(run: AgentRun) -> tuple[str, str] | None:
    """Return realm and key of the resource whose data a run is, or None.

    Runs of trusted code have none, and those of a service that names no end user.
    """
    if run.resource is not None:
        return str(run.resource.realm), str(run.resource.key)
    if run.thread is not None and run.thread.realm:
        return str(run.thread.realm), str(run.thread.resource_key)
    if run.requested_by_id is None or run.experiment_id is not None or run.realm_owner is not None:
        return None
    return user_realm(run.requested_by_id), user_realm(run.requested_by_id)


def digest_of_run(run: AgentRun) -> str:
    """Return the hash of the resource whose data a run is, or a blank text."""
    resource = resource_of_run(run)
    return resource_digest(*resource) if resource is not None else ""
