"""Memberships and API keys."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import OperationalError, models
from django.utils import timezone

from access_app.role import SHARED_LABEL, Role
from agentcms.db.lock_timeout import no_lock_wait
from agentcms.db.statements.compiled_query import compiled_query
from agentcms.wire.json_types import JSONObject, JSONValue

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = logging.getLogger(__name__)

# Of `acms_` and eight digits. It finds the row, and people recognize a key by it. The rest is the secret.
KEY_PREFIX_LENGTH = 13
LAST_USED_RESOLUTION = timedelta(minutes=1)
KEY_ROLES = {"", *Role.values}
MAX_RESOURCE_LENGTH = 256
MAX_KEY_CONTEXT_KB = 8  # of facts about a caller, as JSON
SERVER_FACTS = frozenset({"userId", "roles", "owner"})  # which no key can claim


def printable_id(value: str) -> None:
    """Raise ValidationError unless the id is printable and can be part of a URL: not blank, no slash, no dots only."""
    if not value.isprintable() or not value.strip() or "/" in value or value in {".", ".."}:
        raise ValidationError(
            "Use printable characters other than a slash. '.', '..' and spaces only are not allowed.", code="invalid"
        )


def validate_key_resource(value: str) -> None:
    """Raise ValidationError unless an API key can serve the resource with this ID. Blank is all resources."""
    if len(value) > MAX_RESOURCE_LENGTH or not value.isprintable():
        raise ValidationError(
            f"A resource has at most {MAX_RESOURCE_LENGTH} printable characters.", code="invalid_resource"
        )


def validate_key_context(value: object) -> None:
    """Raise ValidationError unless a value is an object of facts about a caller, or None."""
    if not isinstance(value, dict | None):
        raise ValidationError('The context must be a JSON object, such as {"plan": "pro"}.', code="invalid_context")
    if names := sorted(name for name in value or {} if name in SERVER_FACTS):
        message = f"The server itself knows {', '.join(names)} of each caller. Leave that out, or choose another name."
        raise ValidationError(message, code="invalid_context")
    if len(json.dumps(value).encode()) > MAX_KEY_CONTEXT_KB * 1024:
        raise ValidationError(f"The context must not exceed {MAX_KEY_CONTEXT_KB} KB.", code="invalid_context")


class Membership(models.Model):
    """The role of a user for one owner. The blank owner is Shared."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    owner_id = models.CharField(
        "team", max_length=128, blank=True, validators=[printable_id], help_text="Blank is Shared."
    )
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)

    class Meta:
        ordering: ClassVar = ["owner_id", "user_id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "owner_id"], name="one_role_per_user_and_owner"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_is_known"),
        ]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="membership_owner")]

    def __str__(self) -> str:
        return f"{self.user}: {self.get_role_display()} in {self.owner_id or SHARED_LABEL}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def issue(
        self,
        user: User,
        name: str = "",
        role: Role | str = "",
        expires_at: datetime | None = None,
        *,
        realm_owner: str | None = None,
        resource: str = "",
        context: JSONObject | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its token. The token is not stored and cannot be shown again.

        `realm_owner` is the owner whose end users the key serves, `resource` the only one that it reaches, and
        `context` facts about them.
        """
        prefix = f"acms_{secrets.token_hex(4)}"
        token = f"{prefix}_{secrets.token_urlsafe(32)}"
        key = self.create(
            user=user,
            name=name or prefix,
            prefix=prefix,
            secret_hash=hash_token(token),
            role=role,
            expires_at=expires_at,
            realm_owner=realm_owner,
            resource=resource,
            context=context,
        )
        return key, token

    def valid(self) -> ApiKeyQuerySet:
        """Return the keys that are neither expired nor revoked."""
        return self.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now()), revoked_at=None)

    def find(self, token: str) -> ApiKey | None:
        """Return the valid key of a token, with its user, or None; one query."""
        if not (token.isascii() and token.isprintable()):  # PostgreSQL rejects a NUL even in a comparison
            return None
        key = keys_with_prefix.first(prefix=token[:KEY_PREFIX_LENGTH])
        # An unknown prefix takes as long as a wrong secret, so that the time does not tell which prefixes exist.
        expected = key.secret_hash if key else "0" * 64
        if not hmac.compare_digest(hash_token(token), expected) or key is None:
            return None
        return key if key.is_valid else None


class ApiKey(models.Model):
    """An API key. A program acts as its user, with no role above the key's own."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=KEY_PREFIX_LENGTH, unique=True, editable=False)
    secret_hash = models.CharField(max_length=64, editable=False)
    role = models.CharField(
        max_length=16,
        choices=Role,
        blank=True,
        help_text="The highest role of the key. Blank is the same as its user.",
    )
    # Null: the conversations of the key are those of its user. A blank owner is Shared.
    realm_owner = models.CharField(
        "serves end users of",
        max_length=128,
        null=True,
        blank=True,
        editable=False,
        help_text="The team whose end users the key serves, apart from the conversations of its user.",
    )
    resource = models.CharField(
        "only for resource",
        max_length=256,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The only end user, document or room whose conversations the key reaches. Blank is all.",
    )
    context = models.JSONField(
        null=True, blank=True, editable=False, help_text='Facts about the caller, such as {"plan": "pro"}.'
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering: ClassVar = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def has_ended(self) -> bool:
        """True if the key is expired or revoked, so that it never works again."""
        is_expired = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is not None or is_expired

    @property
    def is_valid(self) -> bool:
        """True unless the key is expired or revoked, its user inactive or its role unknown."""
        has_known_role = self.role in KEY_ROLES
        return not self.has_ended and has_known_role and self.user.is_active

    @property
    def facts(self) -> list[tuple[str, JSONValue]]:
        """The sorted names and the values of the context. In a template, `context.items` could be the fact "items"."""
        return sorted((self.context or {}).items())

    def revoke(self) -> None:
        """Revoke the key at once; a second call changes nothing."""
        ApiKey.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())
        # The row decides: another request may have revoked the key earlier.
        self.refresh_from_db(fields=["revoked_at"])

    @property
    def used_today(self) -> bool:
        """True if the key was used in the last 24 hours, so that a program probably depends on it."""
        return self.last_used_at is not None and timezone.now() - self.last_used_at < timedelta(days=1)

    @property
    def used_recently(self) -> bool:
        """True if the stored last use is less than a minute ago."""
        return self.last_used_at is not None and timezone.now() - self.last_used_at <= LAST_USED_RESOLUTION

    def touch(self) -> None:
        """Store the time of use, at most once a minute, so that read requests rarely write.

        A database that is locked or cannot write, as on a full disk, must neither delay nor fail a read request. The
        next request with the key tries again.
        """
        if self.used_recently:
            return
        now = timezone.now()
        try:
            # Not by `save()`, which writes all columns: the key may have been revoked since it was read.
            with no_lock_wait():
                ApiKey.objects.filter(pk=self.pk).update(last_used_at=now)
        except OperationalError as reason:
            log.info("The last use of an API key could not be stored: %s", reason)
        else:
            self.last_used_at = now


@compiled_query
def keys_with_prefix(*, prefix: str) -> models.QuerySet[ApiKey]:
    """Return the key of a request and its user."""
    return ApiKey.objects.filter(prefix=prefix).select_related("user").order_by()


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token. A slow hash is not needed for 256 random bits."""
    # A request may contain half of a surrogate pair, at which `encode` would raise.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class SignInAttempt(models.Model):
    """The number of sign-in attempts within a window, stored here while the cache is unavailable."""

    key = models.CharField(primary_key=True, max_length=64)
    count = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "access_app_signintries"

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M:%S}"
