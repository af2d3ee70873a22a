"""The e-mail notices of users about calls that wait for them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class ApprovalNotice(models.Model):
    """The choice of a user about e-mail on waiting calls, and the time of the last one."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="approval_notice"
    )
    by_email = models.BooleanField("e-mail", default=True)
    sent_at = models.DateTimeField(null=True, editable=False)
    claimed_at = models.DateTimeField(null=True, editable=False)  # by a process that is sending an e-mail

    class Meta:
        verbose_name = "approval notice"
        ordering: ClassVar = ["user_id"]

    def __str__(self) -> str:
        return f"{self.user}: {'e-mail' if self.by_email else 'no e-mail'}"
