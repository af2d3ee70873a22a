"""Model providers that staff add in the admin."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from agentcms.db.encryption import PROVIDER_KEYS, encrypt
from agentcms.outbound.addresses import validate_url
from agents_app.registry import Kind, registry
from runs_app.providers.allowed_settings import setting_error


class ModelProvider(models.Model):
    """A provider with its dialect, base URL and API key. The key is stored encrypted and never displayed."""

    class Dialect(models.TextChoices):
        OPENAI = "openai", "OpenAI"
        ANTHROPIC = "anthropic", "Anthropic"
        GOOGLE = "google", "Google"
        COMPATIBLE = "openai-compatible", "OpenAI-compatible"
        COHERE = "cohere", "Cohere (embeddings only)"
        VOYAGE = "voyage", "Voyage AI (embeddings only)"
        BEDROCK = "bedrock", "Amazon Bedrock (embeddings only)"

    key = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9._-]*\Z", "Use lowercase letters, digits, '.', '_' and '-'.")],
        help_text="The part before the slash in provider/name. The key of a built-in provider replaces it.",
    )
    title = models.CharField(max_length=100)
    dialect = models.CharField(max_length=32, choices=Dialect, default=Dialect.COMPATIBLE)
    base_url = models.CharField(
        "base URL", max_length=500, blank=True, default="", help_text="Leave blank for the default of the dialect."
    )
    encrypted_key = models.TextField(blank=True, default="", editable=False)
    aliases = models.JSONField(
        default=list, blank=True, help_text='Other keys of this provider: ["local", "internal"].'
    )
    names = models.JSONField(
        "models", default=list, blank=True, help_text='Models that the editor offers: ["llama-4-scout"].'
    )
    allowed_settings = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text="Settings of models that editors may use too, although some reach what the provider stores for all "
        'users of the API key: ["googleCachedContent", "extraBody.min_p"].',
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
        """Raise ValidationError by field."""
        super().clean()
        errors: dict[str, object] = {}
        if self.base_url:
            try:
                validate_url(self.base_url)
            except ValidationError as error:
                errors["base_url"] = error
        for name in ("aliases", "names", "allowed_settings"):
            value = getattr(self, name)
            if not (isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)):
                errors[name] = 'Enter a list of texts: ["one", "two"].'
        if "allowed_settings" not in errors:
            faults = [message for name in self.allowed_settings if (message := setting_error(name))]
            errors |= {"allowed_settings": faults} if faults else {}
        if "aliases" not in errors and (taken := self._taken_aliases()):
            errors["aliases"] = f"Another provider already uses {', '.join(taken)}. Choose another alias."
        if (other := self._provider_with_alias()) is not None:
            # Its agents would send their messages to this provider.
            errors["key"] = f"The provider {other} has the alias {self.key}. Choose another ID, or remove the alias."
        if errors:
            raise ValidationError(errors)

    def _taken_aliases(self) -> list[str]:
        others = ModelProvider.objects.exclude(pk=self.pk)
        taken = {key for other in others for key in (other.key, *other.aliases)}
        taken |= {entry.key for entry in registry.entries(Kind.MODEL_PROVIDER)} | {self.key}
        return sorted({*self.aliases} & taken)

    def _provider_with_alias(self) -> ModelProvider | None:
        """Return the provider that has the ID of this one as an alias, or None."""
        others = ModelProvider.objects.exclude(pk=self.pk)
        return next((other for other in others if self.key in other.aliases), None)

    def set_secret(self, text: str) -> None:
        """Set the API key. A blank text removes it."""
        self.encrypted_key = encrypt(text, PROVIDER_KEYS) if text else ""
