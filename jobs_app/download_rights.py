"""The rights that a download of the file of a job needs."""

from __future__ import annotations

from access_app.caller import Caller
from access_app.permissions import has_role_everywhere, owner_ids_for
from access_app.role import Role, RoleRequired
from jobs_app.models import Job

OWNER_IDS = "ownerIds"  # in the result of an export: the owners for which a download needs a role


def require_owners_of_file(user: Caller, job: Job) -> None:
    """Raise RoleRequired if the file of a job has data of an owner for which the user no longer has a role.

    The user may have left a team since the job wrote the file.
    """
    if has_role_everywhere(user, Role.VIEWER):
        return
    result = job.result or {}
    if lost := sorted(set(result.get(OWNER_IDS, ())) - set(owner_ids_for(user))):
        raise RoleRequired(Role.VIEWER, lost[0], "Start a new export.")
