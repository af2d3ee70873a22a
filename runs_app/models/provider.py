"""Model providers that staff add in the admin."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from agents_app.registry import Kind, registry
from runs_app.providers.address_policy import check_url
from runs_app.providers.encryption import encrypt


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
    base_url = models.CharField(
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

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.updated_at = timezone.now()
        super().save(*args, **kwargs)

    def clean(self) -> None:
        """Raises ValidationError by field."""
        super().clean()
        faults: dict[str, Any] = {}
        if self.base_url:
            try:
                check_url(self.base_url)
            except ValidationError as error:
                faults["base_url"] = error
        for name in ("aliases", "names"):
            value = getattr(self, name)
            if not (isinstance(value, list) and all(isinstance(each, str) and each.strip() for each in value)):
                faults[name] = 'Write a list of texts: ["one", "two"].'
        if "aliases" not in faults and (taken := self._taken_aliases()):
            faults["aliases"] = f"{', '.join(taken)} already means another provider. Choose another alias."
        if faults:
            raise ValidationError(faults)

    def _taken_aliases(self) -> list[str]:
        others = ModelProvider.objects.exclude(pk=self.pk)
        known = {key for other in others for key in (other.key, *other.aliases)}
        known |= {entry.key for entry in registry.entries(Kind.MODEL_PROVIDER)} | {self.key}
        return sorted({*self.aliases} & known)

    def set_secret(self, text: str) -> None:
        """Keep another key; an empty one is none."""
        self.encrypted_key = encrypt(text) if text else ""
