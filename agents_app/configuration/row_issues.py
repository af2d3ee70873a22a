"""The checks of a row beside those of the body of a request: one response reports the issues of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy

from pydantic import BaseModel

from agentcms.errors import BadRequest
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError, Issue, as_partial, validate_fields

RowCheck = Callable[[JSONObject], list[Issue]]


def reject_issues(issues: list[Issue]) -> None:
    """Raise BadRequest if there are issues of the body of a request."""
    if issues:
        raise BadRequest("request body", issues)


@contextmanager
def adding_issues_of_row(model: type[BaseModel], body: JSONObject, check: RowCheck) -> Iterator[None]:
    """Add what `check` finds in the valid fields of a body to the ConfigError about the others."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([*error.issues, *issues_of_row(error.issues, model, body, check)]) from None


def issues_of_row(issues: list[Issue], model: type[BaseModel], body: JSONObject, check: RowCheck) -> list[Issue]:
    """Return the issues of a row with the fields of a body that have none. A row without them may have others."""
    invalid, body = [issue.field for issue in issues], deepcopy(body)
    for path in invalid:
        drop_value(body, path)
    try:
        fields = validate_fields(as_partial(model), body)
    except ConfigError as error:  # without a member, its object may be invalid
        names = {issue.field.partition(".")[0] for issue in error.issues}
        invalid += names
        fields = validate_fields(as_partial(model), {name: body[name] for name in body.keys() - names})
    return [issue for issue in check(fields) if not any(is_inside(issue.field, path) for path in invalid)]


def drop_value(body: JSONObject, path: str) -> None:
    """Remove the member at a path, or the whole field if the path leads through a list."""
    *names, last = path.split(".")
    place: object = body
    for name in names:
        place = place.get(name) if isinstance(place, dict) else None
    if isinstance(place, dict) and last in place:
        del place[last]
    else:
        body.pop(path.partition(".")[0].partition("[")[0], None)


def is_inside(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))
