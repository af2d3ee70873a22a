"""The names of workspaces, which are the names of folders."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

from agentcms.wire.canonical import sha256_hex

SHARED_FOLDER = "_shared"
is_folder_name = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}").fullmatch
is_workspace_name = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}").fullmatch


def validate_workspace_name(name: str) -> None:
    """Raise ValidationError unless the text can be the name of a workspace."""
    if not is_workspace_name(name):
        raise ValidationError("Use lowercase letters, digits, '-' and '_' for a workspace.", "workspace")


def owner_folder(owner_id: str) -> str:
    """Return the name of the folder of an owner. Two owners never share one."""
    if not owner_id:
        return SHARED_FOLDER
    # Other IDs may differ only in case, or contain what a folder's name cannot.
    return owner_id if is_folder_name(owner_id) else f"_{sha256_hex(owner_id)[:32]}"
