"""The user for whom an export or import runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib.auth import get_user_model

from access_app.models import ApiKey
from agentcms.errors import Forbidden
from jobs_app.models import Job

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def requesting_user(job: Job) -> User:
    """Return the user who requested a job, limited to the role of the API key of the request.

    Read again at each call: a job may take minutes. Raise Forbidden if the user was deactivated or deleted.
    """
    user: Any = get_user_model().objects.filter(pk=job.requested_by_id or 0, is_active=True).first()
    if user is None:
        raise Forbidden("The user who requested this job was deactivated or deleted.")
    # Not saved: permissions read only the role of the key, which may be revoked by now.
    user.api_key = ApiKey(role=job.parameters.get("role", ""))
    return cast("User", user)
