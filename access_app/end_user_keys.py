"""API keys for a single end user, which may be given to the browser of this person.

Such a key serves one resource. It reaches the routes that talk to agents, and none that edits agents or datasets.
"""

from __future__ import annotations

import re

from access_app.models import ApiKey
from agentcms.errors import Forbidden

PATHS_OF_BOUND_KEYS = re.compile(r"/api/(agents(/.*)?|memory/.*|runs(/[^/]+(/(events|steps|stream|cancel))?)?)")
BOUND_KEY_MESSAGE = "This API key only serves the resource {resource}. Use another key for this route."


def reject_other_routes(key: ApiKey, path: str) -> None:
    """Raise Forbidden if a key serves one resource, and the path belongs to no route for end users."""
    if key.resource and not PATHS_OF_BOUND_KEYS.fullmatch(path):
        raise Forbidden(BOUND_KEY_MESSAGE.format(resource=key.resource), "bound_key")
