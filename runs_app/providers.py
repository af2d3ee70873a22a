"""The providers of models that staff keep beside those of the environment."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone


class ModelProvider(models.Model):
    """A provider by key: its dialect, where it listens, and its key, which is stored encrypted and never shown."""

    class Dialect(models.TextChoices):
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"
        GOOGLE = "google", "Google"
        COMPATIBLE = "openai-compatible", "OpenAI-compatible"

    key = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", "Use small letters, digits, '.', '_' and '-'.")],
        help_text="What stands before the slash in provider/name. A built-in one's key replaces it.",
    )
    title = models.CharField(max_length=100)
    dialect = models.CharField(max_length=32, choices=Dialect, default=Dialect.COMPATIBLE)
    base_url = models.URLField(
        "base URL", max_length=500, blank=True, default="", help_text="Blank is the provider's own."
    )
    encrypted_key = models.TextField(blank=True, default="", editable=False)
    aliases = models.JSONField(
        default=list, blank=True, help_text='Other keys that mean this one: ["local", "house"].'
    )
    names = models.JSONField(
        "models", default=list, blank=True, help_text='What the picker offers: ["llama-4-scout"].'
    )
    is_enabled = models.BooleanField("enabled", default=True)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "model provider"
        ordering: ClassVar = ["key"]

    def __str__(self) -> str:
        return self.title or self.key
