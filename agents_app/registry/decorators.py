"""Decorators by which code registers what agents can use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypedDict, TypeVar, Unpack

from django.core.exceptions import ImproperlyConfigured
from pydantic import BaseModel, TypeAdapter

from access_app.role import Role
from agentcms.wire.json_schema import reject_invalid_schema
from agentcms.wire.json_types import JSONMapping
from agents_app.configuration.background_tasks import background_choice
from agents_app.configuration.schema import validate_config
from agents_app.registry.entries import ApprovalPredicate, Entry, Kind, registry
from agents_app.registry.functions import reject_bare_decorator

Registered = TypeVar("Registered", bound=Callable[..., Any])


class ApprovalRules(TypedDict, total=False):
    """The rules of the calls of a tool for which a person is asked."""

    requires_approval: bool | ApprovalPredicate
    approver: str
    four_eyes: bool
    resume_schema: JSONMapping | type[BaseModel] | None
    expires: timedelta | float | None


def tool(
    key: str = "",
    *,
    title: str = "",
    description: str = "",
    at_most_once: bool = False,
    background: bool | JSONMapping | None = None,
    ordered: bool = False,
    id: str = "",
    **approval: Unpack[ApprovalRules],
) -> Callable[[Registered], Registered]:
    """Register a function as a tool. The JSON Schema of its arguments comes from its signature.

    A durable run repeats the call that its process was executing when it stopped, unless the tool is `at_most_once`.

    A person approves each call if `requires_approval` is True. A predicate gets the arguments and the call, as
    `runs_app.calling.current()` returns it; it may be async, and a person is asked if it raises an error. The person
    is an editor, or has the higher role `approver`; with `four_eyes`, it is not who asked for the run. A call on which
    nobody decides expires after `expires`, a duration or seconds. `resume_schema`, a JSON Schema or a pydantic model,
    describes the data that the tool asks for by `current().suspend()`. Raise ImproperlyConfigured for other values.

    With `background`, calls run in the background unless an agent says otherwise: True, or an object with
    `timeout_ms`, `max_retries` and `disposition` ("deferred", "awaited" or "foreground"). The results of an `ordered`
    tool are delivered in the order of the calls.
    """
    # Checked here, so that a mistake stops the start of the server and not a run. Python itself would let a misspelt
    # `requires_approval` pass, and nobody would be asked.
    reject_unknown_rules(approval)
    flags = EntryFlags(
        requires_approval=approval.get("requires_approval", False),
        approver=_approver_role(approval.get("approver", Role.EDITOR)),
        four_eyes=approval.get("four_eyes", False),
        resume_schema=_resume_schema(approval.get("resume_schema")),
        expires=_approval_duration(approval.get("expires")),
        at_most_once=at_most_once,
        background=background_choice(background),
        ordered=ordered,
    )
    return _callable_registrar(Kind.TOOL, key, title, description, id, **flags)


def reject_unknown_rules(rules: Mapping[str, object]) -> None:
    """Raise TypeError for an option that tools do not have, as Python does for other functions."""
    for name in rules.keys() - ApprovalRules.__annotations__.keys():
        raise TypeError(f"tool() got an unexpected keyword argument '{name}'")


def _approver_role(approver: str) -> str:
    if approver not in Role.at_least(Role.EDITOR):
        roles = ", ".join(f"'{role}'" for role in Role.at_least(Role.EDITOR))
        raise ImproperlyConfigured(f"The approver of a tool is one of {roles}, not '{approver}'.")
    return Role(approver)


def _resume_schema(schema: JSONMapping | type[BaseModel] | None) -> JSONMapping | None:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    if schema is None:
        return None
    if isinstance(schema, Mapping):
        try:
            reject_invalid_schema(schema)
        except ValueError as error:
            raise ImproperlyConfigured(f"The resume_schema of a tool is not a JSON Schema: {error}.") from None
        return schema
    raise ImproperlyConfigured("The resume_schema of a tool is a JSON Schema or a pydantic model.")


def _approval_duration(expires: timedelta | float | None) -> timedelta | None:
    duration = timedelta(seconds=expires) if isinstance(expires, int | float) else expires
    if duration is not None and duration <= timedelta(0):
        raise ImproperlyConfigured("The calls of a tool expire after more than 0 seconds.")
    return duration


def workflow(
    key: str = "", *, title: str = "", description: str = "", id: str = ""
) -> Callable[[Registered], Registered]:
    """Register a function or a Celery task as a workflow."""
    return _callable_registrar(Kind.WORKFLOW, key, title, description, id)


def scorer(
    key: str = "", *, title: str = "", description: str = "", id: str = ""
) -> Callable[[Registered], Registered]:
    """Register a function that scores an answer between 0 and 1."""
    return _callable_registrar(Kind.SCORER, key, title, description, id)


def processor(
    key: str = "", *, title: str = "", description: str = "", id: str = "", tool_results: bool = False
) -> Callable[[Registered], Registered]:
    """Register a function that checks or changes messages before or after the model call.

    With `tool_results`, an input processor also gets each text in the results of tools.
    """
    return _callable_registrar(Kind.PROCESSOR, key, title, description, id, processes_tool_results=tool_results)


def code_agent(key: str, **configuration: Any) -> Entry:
    """Register a read-only agent that others can use as a sub-agent. Takes the fields of a configuration."""
    fields = validate_config(configuration)
    return registry.add(Entry(Kind.AGENT, key, fields["name"], fields.get("description", ""), target=fields))


def is_task(target: object) -> bool:
    """Return whether a target is a Celery task rather than a plain function."""
    return hasattr(target, "apply_async") and hasattr(target, "run")


class EntryFlags(TypedDict, total=False):
    """The flags of an entry that is a function."""

    requires_approval: bool | ApprovalPredicate
    approver: str
    four_eyes: bool
    resume_schema: JSONMapping | None
    expires: timedelta | None
    at_most_once: bool
    background: JSONMapping | None
    ordered: bool
    processes_tool_results: bool


def _callable_registrar(
    kind: Kind, key: str, title: str, description: str, id: str, **flags: Unpack[EntryFlags]
) -> Callable[[Registered], Registered]:
    reject_bare_decorator(key)

    def register(target: Registered) -> Registered:
        name = target.__name__
        registered: Any = target
        # The parameters of a Celery task are those of its function; calling the task itself takes any.
        function = registered.run if is_task(registered) else registered
        registry.add(
            Entry(
                kind,
                key or name.replace("_", "-"),
                title or name.replace("_", " ").capitalize(),
                description or (function.__doc__ or "").strip(),
                schema=TypeAdapter(function).json_schema(),
                target=target,
                id=id,
                **flags,
            )
        )
        return target

    return register
