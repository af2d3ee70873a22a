"""Admin of model providers. API keys can be entered but are never displayed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from access_app.admin_base.concurrent_changes import LockedChangeMixin
from access_app.admin_base.lists import CheckedListMixin, WithoutBulkDeletionMixin
from agentcms.wire.canonical import canonical
from agents_app.models import Agent, AgentQuerySet
from agents_app.registry import Kind, registry
from knowledge_app.models import KnowledgeBase
from runs_app.models import ModelProvider
from runs_app.providers import cached_providers

MAX_NAMED = 10
LOSING_FIELDS = {"key", "aliases", "is_enabled"}  # whose change may take a provider from agents


def agents_of_providers(keys: Iterable[str]) -> AgentQuerySet:
    """Return the agents whose live version or draft uses a model of a provider with one of these IDs or aliases."""
    uses = Q(pk__in=[])
    for key in keys:
        # A search in the text finds it, because snapshots are canonical JSON: no blank spaces.
        text = f'"provider":{canonical(key)}'
        uses |= Q(active_version__snapshot_text__contains=text) | Q(head_version__snapshot_text__contains=text)
    return Agent.objects.filter(uses)


def bases_of_providers(keys: Iterable[str]) -> QuerySet[KnowledgeBase]:
    """Return the knowledge bases whose embedder is a model of a provider with one of these IDs or aliases."""
    uses = Q(pk__in=[])
    for key in keys:
        uses |= Q(embedder__startswith=f"{key}/")
    return KnowledgeBase.objects.filter(uses)


def first_names(rows: QuerySet[Any]) -> list[str]:
    """Return the names of the first rows, and how many more there are."""
    names = [str(row) for row in rows.order_by("name")[:MAX_NAMED]]
    more = rows.count() - len(names)
    return [*names, f"and {more} more"] if more > 0 else names


def find_lost_keys(keys_before: set[str], row: ModelProvider) -> set[str]:
    """Return the IDs and aliases with which agents no longer find a provider."""
    # A disabled provider still replaces the one of the code with its ID.
    in_code = {entry.key for entry in registry.entries(Kind.MODEL_PROVIDER)} - {row.key}
    return keys_before - in_code - ({row.key, *row.aliases} if row.is_enabled else set())


class LinesField(forms.CharField):
    """A list of texts, one per line."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        return [line.strip() for line in str(super().to_python(value)).splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(list(initial or []) != self.to_python(data))


class ProviderForm(forms.ModelForm):
    """Form of a provider. The field of the API key is always empty when the page opens."""

    aliases = LinesField(required=False, help_text="Other IDs of this provider, one per line.")
    names = LinesField(
        label="Models", required=False, help_text="Models that the editor offers, one per line, such as llama-4-scout."
    )
    allowed_settings = LinesField(
        required=False,
        help_text="Settings of models that editors may use too, one per line, such as extraBody.min_p. Some of them "
        "reach what the provider stores for all users of the API key.",
    )

    secret = forms.CharField(
        label="API key",
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Stored encrypted and never displayed. Leave empty to keep the stored key.",
    )
    delete_secret = forms.BooleanField(label="Delete the stored key", required=False)

    class Meta:
        model = ModelProvider
        fields = (
            "key",
            "title",
            "dialect",
            "base_url",
            "secret",
            "delete_secret",
            "aliases",
            "names",
            "allowed_settings",
            "is_enabled",
        )
        labels: ClassVar = {"key": "Provider ID"}  # not the API key
        error_messages: ClassVar = {"key": {"unique": "Another provider has this ID. Choose another one."}}

    def clean_secret(self) -> str:
        secret: str = self.cleaned_data["secret"].strip()
        if secret and not cached_providers.is_valid_key(secret):
            raise ValidationError("The key contains invalid characters. Copy it again.", code="secret")
        return secret

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        is_moved = {"base_url", "dialect"} & {*self.changed_data}
        if self.instance.encrypted_key and is_moved and not values.get("secret") and not values.get("delete_secret"):
            # Otherwise a user could read the stored key by sending it to a server of their own.
            message = "The base URL or dialect changed. Enter the key again, or delete the stored one."
            self.add_error("secret", ValidationError(message, code="moved"))
        return values

    def save(self, commit: bool = True) -> ModelProvider:
        values = self.cleaned_data
        if values["secret"] or values.get("delete_secret"):
            self.instance.set_secret(values["secret"])
        row: ModelProvider = super().save(commit)
        return row


@admin.register(ModelProvider)
class ModelProviderAdmin(WithoutBulkDeletionMixin, LockedChangeMixin, CheckedListMixin, admin.ModelAdmin):
    """Admin for superusers only: API keys cost money, and prompts are sent to the base URL."""

    form = ProviderForm
    list_display = ("title", "provider_id", "dialect", "base_url", "has_key", "state")
    search_fields = ("key", "title")

    def get_fields(self, request: HttpRequest, obj: ModelProvider | None = None) -> Any:
        """Return the fields; without a stored key there is none to delete."""
        names = list(ProviderForm.Meta.fields)
        return names if obj is not None and obj.encrypted_key else [name for name in names if name != "delete_secret"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: ModelProvider | None = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: ModelProvider | None = None) -> bool:
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: ModelProvider | None = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: ModelProvider, form: ProviderForm, change: bool) -> None:
        """Save a provider. Name the agents that lose it, as the page before a deletion does."""
        super().save_model(request, obj, form, change)
        if change and LOSING_FIELDS & {*form.changed_data}:
            lost_keys = find_lost_keys({form.initial["key"], *form.initial["aliases"]}, obj)
            if names := first_names(agents_of_providers(lost_keys)):
                messages.warning(request, f"These agents will not answer: {', '.join(names)}.")

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete a provider, after a question that names the agents and the knowledge bases that use it."""
        row = self.get_object(request, unquote(object_id))
        keys = (row.key, *row.aliases) if row else ()
        agents, bases = first_names(agents_of_providers(keys)), first_names(bases_of_providers(keys))
        context = {"used_by": agents, "unsearchable_bases": bases}
        return super().delete_view(request, object_id, {**(extra_context or {}), **context})

    @admin.display(description="provider ID", ordering="key")
    def provider_id(self, row: ModelProvider) -> str:
        return row.key

    @admin.display(boolean=True, description="API key")
    def has_key(self, row: ModelProvider) -> bool:
        return bool(row.encrypted_key)

    @admin.display
    def state(self, row: ModelProvider) -> str:
        return cached_providers.provider_from_row(row).reason or "Ready"
