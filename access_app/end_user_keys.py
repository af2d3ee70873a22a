"""API keys for end users: for all those of a team, or for a single one.

A key for a single one may be given to the browser of this person. It serves one resource, and reaches the routes that
talk to agents, but none that edits agents or datasets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from access_app.caller import Caller
from access_app.models import ApiKey
from access_app.permissions import has_role
from access_app.role import SHARED_LABEL, Role
from agentcms.errors import Forbidden
from agentcms.wire.canonical import canonical

if TYPE_CHECKING:
    from django.contrib.auth.models import User

PATHS_OF_BOUND_KEYS = re.compile(r"/api/(agents(/.*)?|memory/.*|runs(/[^/]+(/(events|steps|stream|cancel))?)?)")
NOT_AN_EDITOR_MESSAGE = "{user} is not an editor of {team}. Make the user a member first."
VIEWER_KEY_MESSAGE = "A key for end users must be able to edit. Choose a higher role or none."
BOUND_KEY_MESSAGE = "This API key only serves the resource {resource}. Use another key for this route."


def find_role_faults(user: User | None, role: str, owner_id: str) -> Iterator[tuple[str, str]]:
    """Yield why a new key cannot serve the end users of a team: the column of the key, and the message.

    A form without a valid user passes None.
    """
    # Such a key runs agents, which needs the editor role.
    if user is not None and not has_role(user, Role.EDITOR, owner_id):
        yield "user", NOT_AN_EDITOR_MESSAGE.format(user=user, team=owner_id or SHARED_LABEL)
    if role == Role.VIEWER:
        yield "role", VIEWER_KEY_MESSAGE


def reject_other_routes(key: ApiKey, path: str) -> None:
    """Raise Forbidden if a key serves one resource, and the path belongs to no route for end users."""
    if key.resource and not PATHS_OF_BOUND_KEYS.fullmatch(path):
        raise Forbidden(BOUND_KEY_MESSAGE.format(resource=key.resource), "bound_key")


def served_end_users(user: Caller) -> str:
    """Return a text that tells apart whom the API keys of one user serve. It is blank for the user alone."""
    key: ApiKey | None = getattr(user, "api_key", None)
    if key is None or (key.realm_owner is None and not key.resource):
        return ""
    return canonical([key.realm_owner, key.resource])
