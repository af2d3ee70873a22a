"""Realms: whose conversations and memory a caller reaches.

No call reaches the data of another realm. The realm of a request comes from its credentials, never from its content.
Inside a realm, a resource is the owner of a memory: an end user, a document, a room.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from django.contrib.auth import get_user_model

from access_app.caller import Caller
from access_app.models import ApiKey
from access_app.permissions import has_role, max_role, require_role
from access_app.role import Role, RoleRequired
from agentcms.errors import ApiError, Forbidden
from agentcms.wire.canonical import sha256_hex

MAX_KEY_LENGTH = 256
RESOURCE_MESSAGE = f"This must be a text of 1 to {MAX_KEY_LENGTH} printable characters."
OTHER_RESOURCE_MESSAGE = "This API key only serves the resource {resource}. Omit the resource, or name this one."
RESOURCE_REQUIRED_MESSAGE = "This API key serves many resources. Name one as resourceId."
# 18 digits fit the primary key of a user. The ID of an owner is any text of at most 128 characters.
_REALM = re.compile(r"u[0-9]{1,18}|o.{0,128}", re.DOTALL)


def user_realm(user_id: int) -> str:
    """Return the realm of a user, which is also the key of the user's own resource."""
    return f"u{user_id}"


def owner_realm(owner_id: str) -> str:
    """Return the realm of the end users whom the keys of an owner serve."""
    return f"o{owner_id}"


def owner_of_realm(realm: str) -> str | None:
    """Return the owner whose end users have a realm, or None for the realm of a user."""
    return realm[1:] if realm.startswith("o") else None


def describe_realm(realm: str, username: str) -> str:
    """Return a realm for people: `tom (u3)`, or `end users of support (osupport)`.

    Args:
        realm: A realm of a user or an owner.
        username: The name of the user of a user's realm, or blank if the user is not known.
    """
    if realm.startswith("o"):
        return f"end users of {realm[1:] or 'Shared'} ({realm})"
    return f"{username} ({realm})" if username else realm


def is_realm(text: str) -> bool:
    """Return True for a text in the form of a realm: `u12` or `osupport`."""
    return _REALM.fullmatch(text) is not None


def is_resource_key(value: object) -> bool:
    """Return True for a valid resource ID."""
    return isinstance(value, str) and 0 < len(value) <= MAX_KEY_LENGTH and value.isprintable() and bool(value.strip())


def resource_digest(realm: str, key: str) -> str:
    """Return the hash by which a resource is known after its data was deleted."""
    return sha256_hex(json.dumps([realm, key], ensure_ascii=False))


def served_owner(user: Caller) -> str | None:
    """Return the owner whose end users the API key of a caller serves, or None for a caller in its own realm."""
    key: ApiKey | None = getattr(user, "api_key", None)
    return None if key is None else key.realm_owner


@dataclass(frozen=True)
class MemoryCaller:
    """A caller with the realm and the resource that its credentials give it."""

    user: Caller
    realm: str
    default_resource: str  # blank if the caller must name a resource
    is_bound: bool  # True if the API key serves only this resource

    @property
    def owner_id(self) -> str | None:
        """The owner whose end users the caller serves, or None for a caller in its own realm."""
        return owner_of_realm(self.realm)

    def resource_to_read(self, named: str) -> str:
        """Return the resource of a list: the named one, that of the credentials, or "" for the whole realm.

        A name is ignored if the API key serves only one resource.
        """
        return self.default_resource if self.is_bound else named or self.default_resource

    def resource_to_write(self, named: str) -> str:
        """Return the resource that a request changes.

        Raise Forbidden if the API key serves another one, and ApiError (400) if the caller must name one.
        """
        if self.is_bound and named not in ("", self.default_resource):
            raise Forbidden(OTHER_RESOURCE_MESSAGE.format(resource=self.default_resource), "other_resource")
        resource = named or self.default_resource
        if not resource:
            raise ApiError(400, RESOURCE_REQUIRED_MESSAGE, "resource_required")
        return resource

    def require_write(self) -> None:
        """Raise RoleRequired if the API key is limited to reading."""
        if not max_role(self.user).covers(Role.EDITOR):
            raise RoleRequired(Role.EDITOR, self.owner_id or "", "This API key can only read.")


def still_has_access(caller: MemoryCaller) -> bool:
    """Return whether the credentials of a caller still give it its realm.

    The key may have been revoked meanwhile, and its user have left the team whose end users it serves.
    """
    if not refresh_credentials(caller.user):
        return False
    return caller.owner_id is None or has_role(caller.user, Role.EDITOR, caller.owner_id)


def refresh_credentials(user: Caller) -> bool:
    """Read what a caller may do again. Return whether the account is still on, and the API key still valid.

    Memberships are read whenever they count. The rights of a superuser and the role of a key are not.
    """
    account = get_user_model().objects.filter(pk=int(user.pk or 0), is_active=True).only("is_superuser").first()
    if account is None:
        return False
    user.is_superuser = account.is_superuser  # type: ignore[misc]
    key: ApiKey | None = getattr(user, "api_key", None)
    stored = None if key is None else ApiKey.objects.valid().filter(pk=key.pk).only("role").first()
    if key is not None and stored is not None:
        key.role = stored.role
    return key is None or stored is not None


def memory_caller(user: Caller) -> MemoryCaller:
    """Return the realm and the resource of a caller.

    Raise RoleRequired if the user of a key for the end users of an owner is no longer an editor there.
    """
    key: ApiKey | None = getattr(user, "api_key", None)
    own = user_realm(int(user.pk or 0))
    if key is None:
        return MemoryCaller(user, own, own, False)
    if key.realm_owner is None:
        return MemoryCaller(user, own, key.resource or own, bool(key.resource))
    require_role(user, Role.EDITOR, key.realm_owner)
    return MemoryCaller(user, owner_realm(key.realm_owner), key.resource, bool(key.resource))
