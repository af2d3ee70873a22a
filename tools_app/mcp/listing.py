"""The listing of the tools of MCP servers: by hand, each night, and after a call of an unknown tool."""

from __future__ import annotations

import asyncio

from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from access_app.caller import Caller
from agentcms.cache import CACHE_ERRORS
from agentcms.errors import NotFound, Unprocessable
from agentcms.wire.json_types import JSONObject
from jobs_app.models import Job
from jobs_app.runner import enqueue_unless_queued, job_handler
from jobs_app.slots import JobSlots
from tools_app.mcp.cached_servers import lock_server, server_from_row, switch_server
from tools_app.mcp.definitions import Listing, without_surplus
from tools_app.mcp.errors import McpError
from tools_app.models import McpServer
from tools_app.models.mcp_server import ACCEPTED_FOR_ALL

LIST_TOOLS = "list_mcp_tools"
SECONDS_BETWEEN_LISTINGS = 60  # that calls of unknown tools start
MAX_LISTINGS = 2  # of a server that is changed while it is asked
LISTINGS_PER_WORKER = 2  # at once: servers that do not answer must not occupy all threads

listing_slots = JobSlots(lambda: LISTINGS_PER_WORKER)


class ListingFailed(Unprocessable):
    """A server could not be asked for its tools. The message is the error of the job."""


@job_handler(LIST_TOOLS, "Listing of MCP tools")
def run_listing(job: Job) -> object:
    """List the tools of one server, or of all enabled ones. Report each server that failed."""
    server = McpServer.objects.filter(key=job.parameters.get("server"))
    return listing_slots.run(job, list_tools_of_job, server.values_list("owner_id", flat=True).first() or "")


def list_tools_of_job(job: Job) -> JSONObject:
    key = job.parameters.get("server")
    if key is not None:
        row = McpServer.objects.filter(key=key).first()
        if row is None:
            raise NotFound(f"The MCP server '{key}' was deleted.")
        return list_and_store(row)
    reports: list[JSONObject] = []
    enabled = McpServer.objects.filter(is_enabled=True)
    keys = list(enabled.order_by("pk").values_list("pk", flat=True))
    for done, primary_key in enumerate(keys, 1):
        # Each is read when its turn comes: by then it may be disabled, or have another address.
        if (row := enabled.filter(pk=primary_key).first()) is not None:
            reports.append(try_to_list(row))
        job.report_progress(done=done, total=len(keys))
    return {"servers": reports}


def try_to_list(row: McpServer) -> JSONObject:
    """List the tools of a server and store them. Return the report, also of a failure."""
    try:
        return list_and_store(row)
    except (ListingFailed, NotFound) as error:
        return {"server": row.key, "error": error.error}


def enqueue_listing(row: McpServer, user: Caller | None = None) -> Job:
    return enqueue_unless_queued(LIST_TOOLS, {"server": row.key}, user)


def list_changed_server(row: McpServer, user: Caller | None = None) -> Job:
    """Let a worker list the tools of a new server, or of one with another connection, inside a transaction.

    The last error is that of the earlier connection, and would be shown until the worker has asked again.
    """
    row.list_error = ""
    McpServer.objects.filter(pk=row.pk).update(list_error="")
    return enqueue_listing(row, user)


def switch_and_list(server_id: int, is_enabled: bool, user: Caller | None = None) -> tuple[McpServer, str]:
    """Enable or disable a server, as `switch_server` does, and list the tools of an enabled one.

    The listing of each night leaves out those that are disabled.
    """
    with transaction.atomic():
        row, reason = switch_server(server_id, is_enabled, user)
        if row.is_enabled and not reason:
            enqueue_listing(row, user)
    return row, reason


def enqueue_listing_soon(key: str) -> None:
    """List the tools of a server whose list seems to be old, at most once a minute.

    While the cache is unavailable, only a listing that has not started yet is not repeated.
    """
    try:
        is_due = cache.add(f"mcp-listing-{key}", True, SECONDS_BETWEEN_LISTINGS)
    except CACHE_ERRORS:
        # The error of the cache must not take the place of that of the tool.
        is_due = True
    if is_due:
        enqueue_unless_queued(LIST_TOOLS, {"server": key})


def list_and_store(row: McpServer) -> JSONObject:
    """List the tools of a server and store them. Raise ListingFailed after storing the reason.

    A server that got another address or other headers meanwhile is asked again. What it answered before is not that
    of its present address, and is not stored.
    """
    for _ in range(MAX_LISTINGS):
        answer = ask_for_tools(row)
        with transaction.atomic():
            current = lock_server(row.pk)
            if is_same := current.connection_columns == row.connection_columns:
                report = store_server_answer(current, answer)
        if not is_same:
            row = current
        elif isinstance(answer, McpError):
            raise ListingFailed(str(answer))
        else:
            return report
    raise ListingFailed(f"The MCP server '{row.title}' was changed while it was asked. List its tools again.")


def ask_for_tools(row: McpServer) -> Listing | McpError:
    """Connect to a server and return its tools, or why it did not answer."""
    from tools_app.mcp.calls import list_tools  # imports pydantic-ai, which is heavy

    try:
        return asyncio.run(list_tools(server_from_row(row)))
    except McpError as error:
        return error


def store_server_answer(row: McpServer, answer: Listing | McpError) -> JSONObject:
    """Store what a locked server answered, and return the report."""
    if isinstance(answer, Listing):
        return store_tools(row, answer)
    McpServer.objects.filter(pk=row.pk).update(list_error=str(answer))
    return {}


def store_listing(server_id: int, listing: Listing) -> JSONObject:
    """Store listed tools. Raise NotFound if the server was deleted meanwhile."""
    with transaction.atomic():
        return store_tools(lock_server(server_id), listing)


def store_tools(row: McpServer, listing: Listing) -> JSONObject:
    """Store the tools of a locked server and return the report.

    The first definition of a tool is accepted; a changed one waits until it is accepted.
    """
    before, changed_before = set(row.tools), set(row.changed_tools)
    listing = without_surplus(listing, row.accepted_definitions)
    row.tools = {name: item.to_json() for name, item in listing.definitions.items()}
    # What was accepted before stays: agents must not get a changed definition that nobody has looked at.
    row.accepted = {**row.tools, **row.accepted}
    row.listed_at, row.list_error = timezone.now(), "\n".join(listing.left_out)
    row.save(update_fields=["tools", "accepted", "listed_at", "list_error", "updated_at"])
    return {
        "server": row.key,
        "tools": len(row.tools),
        "added": sorted(set(row.tools) - before),
        "removed": sorted(before - set(row.tools)),
        "changed": sorted(set(row.changed_tools) - changed_before),
        "leftOut": listing.left_out,
    }


def accept_definition(server_id: int, name: str, definition_hash: str, user: Caller | None) -> None:
    """Offer the definition of a tool to all agents, also to those that were saved with another one.

    Raise NotFound if the server does not list the tool, and as `lock_server` does. Raise Unprocessable if its
    definition is not the one of the hash: then it changed since somebody looked at it.
    """
    with transaction.atomic():
        row = lock_server(server_id, user)
        definition = row.definitions.get(name)
        if definition is None:
            raise NotFound(f"The MCP server '{row.title}' does not list the tool '{name}'.")
        if definition.hash != definition_hash:
            raise Unprocessable(
                "The definition changed again. Look at the new difference first.", "definition_changed"
            )
        row.accepted = {**row.accepted, name: {**definition.to_json(), ACCEPTED_FOR_ALL: True}}
        row.save(update_fields=["accepted", "updated_at"])
