"""Parameters and lookups of the API of conversations."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from agentcms.api.query_params import QueryParams
from agentcms.errors import ApiError, BadRequest, NotFound
from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE, JSONFault
from agents_app.configuration.schema import ConfigError, Issue
from agents_app.models import Agent
from memory_app.history.threads import THREAD_KEY_MESSAGE, get_own_thread, get_thread, is_thread_key
from memory_app.models import Thread
from memory_app.observational.limits import THREAD_REQUIRED, THREAD_REQUIRED_MESSAGE
from memory_app.realms import RESOURCE_MESSAGE, MemoryCaller, is_resource_key, memory_caller
from runs_app.requests.facts import memory_for_caller
from runs_app.requests.request_context import parse_request_context

NOT_GIVEN = ("", "undefined", "null")  # as the published client writes a parameter that it does not have
MAX_METADATA_KB = 16
MAX_TITLE_LENGTH = 200  # that of the column


def caller_of(request: Request) -> MemoryCaller:
    """Return the realm and the resource that the credentials of a request give it."""
    return memory_caller(request.user)


def read_resource(query: QueryParams, name: str = "resourceId") -> str:
    """Return the resource that a query names, or a blank text."""
    value = query.text(name) or ""
    if value in NOT_GIVEN:
        return ""
    if not is_resource_key(value):
        query.add_fault(name, RESOURCE_MESSAGE)
    return value


def resource_of_query(request: Request) -> str:
    with QueryParams(request) as query:
        return read_resource(query)


def get_requested_thread(request: Request, key: str) -> Thread:
    """Return a thread that the caller may read."""
    return get_thread(caller_of(request), key, resource_of_query(request))


def thread_of_query(request: Request) -> Thread:
    """Return the thread that a query names. Raise ApiError without one, and NotFound."""
    with QueryParams(request) as query:
        key, resource = query.text("threadId") or "", read_resource(query)
    if key in NOT_GIVEN:
        raise ApiError(400, THREAD_REQUIRED_MESSAGE, THREAD_REQUIRED)
    return get_thread(caller_of(request), key, resource)


def get_changeable_thread(request: Request, key: str) -> Thread:
    """Return a thread that the caller may change. A resource that the API key does not serve is refused."""
    caller, resource = caller_of(request), resource_of_query(request)
    # The lookup below ignores the resource that a bound key names, as reads do. A change of another one is refused.
    if caller.is_bound:
        caller.resource_to_write(resource)
    return get_own_thread(caller, key, resource)


def check_changeable_thread(request: Request, thread_id: str) -> None:
    """Raise ApiError if the caller may not change a thread."""
    get_changeable_thread(request, thread_id)


def get_referred_thread(request: Request, reference: JSONMapping) -> Thread:
    """Return the thread of an earlier response, if the caller may still read it. Raise NotFound."""
    thread = Thread.objects.for_caller(caller_of(request)).filter(pk=reference["thread"]).first()
    if thread is None:
        raise NotFound("The thread of this request was not found")
    return thread


def agent_of_query(request: Request) -> Agent | None:
    """Return the agent of `agentId`, or None without one. Raise NotFound if the user may not see it."""
    with QueryParams(request) as query:
        # The older routes below `memory/network` name the agent `networkId`.
        agent_id = query.text("agentId") or query.text("networkId") or ""
    return None if agent_id in NOT_GIVEN else get_visible_agent(request, agent_id)


def get_visible_agent(request: Request, agent_id: str) -> Agent:
    """Return an agent with its live version. Raise NotFound if the user may not see it."""
    agent = Agent.objects.for_user(request.user).filter(pk=agent_id).select_related("active_version").first()
    if agent is None:
        raise NotFound(f"Agent with id {agent_id} not found")
    return agent


def visible_agent_of(request: Request, thread: Thread | None) -> Agent | None:
    """Return the agent of a thread with its live version, or None without one that the user may see.

    Who left the team of the agent keeps the thread, but no longer reads the configuration of its memory.
    """
    agents = Agent.objects.for_user(request.user).select_related("active_version")
    return agents.filter(pk=thread.agent_id).first() if thread and thread.agent_id else None


def memory_of_query(request: Request, agent: Agent | None) -> JSONValue:
    """Return the memory that an agent has for the caller and the request context of a query, or None."""
    claims: JSONObject = {}
    with QueryParams(request) as query:
        try:
            claims = parse_request_context({}, query.request_contexts).values
        except ConfigError as error:
            query.faults += [JSONFault(issue.field, issue.message) for issue in error.issues]
    return memory_for_caller(agent, request.user, claims)


class BodyFields:
    """The members of a body, with the issues of invalid ones. Leaving the block raises BadRequest."""

    def __init__(self, body: JSONObject) -> None:
        self.body = body
        self.issues: list[Issue] = []

    def __enter__(self) -> BodyFields:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None and self.issues:
            raise BadRequest("request body", [(issue.field, issue.message) for issue in self.issues])
        if kind is not None and issubclass(kind, ConfigError):
            error: Any = rest[0]
            raise BadRequest("request body", [(issue.field, issue.message) for issue in error.issues]) from None

    def resource(self, name: str = "resourceId", *, required: bool = False) -> str:
        value = self.body.get(name)
        if value is None and not required:
            return ""
        if not is_resource_key(value):
            self.issues.append(Issue(name, RESOURCE_MESSAGE))
            return ""
        return str(value)

    def thread_key(self, name: str, *, required: bool = False) -> str:
        value = self.body.get(name)
        if value is None and not required:
            return ""
        if not is_thread_key(value):
            self.issues.append(Issue(name, THREAD_KEY_MESSAGE))
            return ""
        return str(value)

    def title(self) -> str | None:
        value = self.body.get("title")
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > MAX_TITLE_LENGTH:
            self.issues.append(Issue("title", f"This must be a text of at most {MAX_TITLE_LENGTH} characters."))
            return None
        return value

    def metadata(self) -> JSONObject | None:
        value = self.body.get("metadata")
        if value is None:
            return None
        if not isinstance(value, dict):
            self.issues.append(Issue("metadata", NOT_AN_OBJECT_MESSAGE))
        elif len(str(value).encode("utf-8", "surrogatepass")) > MAX_METADATA_KB * 1024:
            self.issues.append(Issue("metadata", f"This must not exceed {MAX_METADATA_KB} KB."))
        else:
            return value
        return None
