"""Memberships and API keys."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, OperationalError, models
from django.utils import timezone

from access_app.role import Role
from agentcms.db.compiled_query import CompiledQuery, model_columns

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = logging.getLogger(__name__)

KEY_PREFIX_LENGTH = 13
LAST_USED_RESOLUTION = timedelta(minutes=1)
KNOWN_ROLES = {"", *Role.values}


def printable_id(value: str) -> None:
    """An id is any printable text that can stand in a path: not blank, no slash, not `.` or `..`."""
    if not value.isprintable() or not value.strip() or "/" in value or value in {".", ".."}:
        raise ValidationError(
            "Use printable characters other than a slash; '.', '..' and spaces alone are not ids.", code="invalid"
        )


class Membership(models.Model):
    """A user's role for one owner; the blank owner is the shared space."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    owner_id = models.CharField(
        "owner", max_length=128, blank=True, validators=[printable_id], help_text="Blank is the shared space."
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
        return f"{self.user} is {self.role} of {self.owner_id or 'the shared space'}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def issue(
        self, user: User, name: str = "", role: Role | str = "", expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its secret text, which is not stored and cannot be shown again."""
        prefix = f"acms_{secrets.token_hex(4)}"
        token = f"{prefix}_{secrets.token_urlsafe(32)}"
        key = self.create(
            user=user,
            name=name or prefix,
            prefix=prefix,
            secret_hash=hash_token(token),
            role=role,
            expires_at=expires_at,
        )
        return key, token

    def find(self, token: str) -> ApiKey | None:
        """The valid key that this secret text belongs to, with its user, or None; one query."""
        if not (token.isascii() and token.isprintable()):  # PostgreSQL refuses a NUL even in a comparison
            return None
        key = find_by_prefix(token[:KEY_PREFIX_LENGTH])
        expected = key.secret_hash if key else "0" * 64
        if not hmac.compare_digest(hash_token(token), expected) or key is None:
            return None
        return key if key.is_valid else None


class ApiKey(models.Model):
    """A secret with which a program acts as a user, never above the role it is cut to."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=KEY_PREFIX_LENGTH, unique=True, editable=False)
    secret_hash = models.CharField(max_length=64, editable=False)
    role = models.CharField(
        max_length=16,
        choices=Role,
        blank=True,
        help_text="The highest role the key acts with; blank is its user's own.",
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
    def is_valid(self) -> bool:
        expired = self.expires_at is not None and self.expires_at <= timezone.now()
        cut_to_known_role = self.role in KNOWN_ROLES
        return self.revoked_at is None and not expired and cut_to_known_role and self.user.is_active

    def revoke(self) -> None:
        """End the key at once; revoking it again changes nothing."""
        ApiKey.objects.filter(pk=self.pk, revoked_at=None).update(revoked_at=timezone.now())
        self.refresh_from_db(fields=["revoked_at"])

    @property
    def used_recently(self) -> bool:
        """Whether what is noted of the key's last use is less than a minute old."""
        return self.last_used_at is not None and timezone.now() - self.last_used_at <= LAST_USED_RESOLUTION

    def touch(self) -> None:
        """Note that the key was used, at most once a minute, so that reads stay reads.

        Where nothing can be written, as on a full disk, nothing is noted: it is no reason to refuse a read.
        """
        if self.used_recently:
            return
        now = timezone.now()
        try:
            ApiKey.objects.filter(pk=self.pk).update(last_used_at=now)
        except OperationalError as reason:
            log.warning("The use of a key could not be noted: %s", reason)
        else:
            self.last_used_at = now


# Every request with a key asks this.
_PREFIX_QUERY = CompiledQuery(
    lambda variant, prefix: (
        ApiKey.objects.order_by()
        .filter(prefix=prefix)
        .values_list(*model_columns(ApiKey), *model_columns(get_user_model(), "user__"))
    ),
    prefix=str,
)


def find_by_prefix(prefix: str) -> ApiKey | None:
    """The key that begins so, with its user; one query."""
    rows = _PREFIX_QUERY(prefix=prefix)
    return api_key_from_columns(rows[0]) if rows else None


def api_key_from_columns(values: tuple[Any, ...]) -> ApiKey:
    """The key and its user whose columns these are."""
    own, users = model_columns(ApiKey), model_columns(get_user_model())
    key = ApiKey.from_db(DEFAULT_DB_ALIAS, own, values[: len(own)])
    key.user = get_user_model().from_db(DEFAULT_DB_ALIAS, users, values[len(own) :])
    return key


def hash_token(token: str) -> str:
    """SHA-256 of a 256-bit random secret: a slow hash would protect nothing that is not safe already."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class SignInAttempt(models.Model):
    """Tries to sign in within a window of time, counted here while the cache is away."""

    key = models.CharField(primary_key=True, max_length=64)
    count = models.PositiveIntegerField(default=0)
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "access_app_signintries"

    def __str__(self) -> str:
        return f"{self.count} until {self.ends_at:%H:%M:%S}"
