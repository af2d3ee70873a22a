"""The user for whom an export or import runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ValidationError

from access_app.models import ApiKey
from jobs_app.models import Job

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def requesting_user(job: Job) -> User:
    """Return the user who requested a job, limited to the role of the API key of the request."""
    user: Any = job.requested_by
    if user is None or not user.is_active:
        raise ValidationError("The user who requested this job was deactivated or deleted.")
    # Not saved: permissions read only the role of the key, which may be revoked by now.
    user.api_key = ApiKey(role=job.parameters.get("role", ""))
    return cast("User", user)
