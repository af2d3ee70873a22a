"""The providers of models in Django admin. Their keys go in and never come out."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from runs_app.models import ModelProvider
from runs_app.providers import table


class ProviderForm(forms.ModelForm):
    """A provider with a field for its key, which is always empty when the page opens."""

    secret = forms.CharField(
        label="Key",
        required=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Stored encrypted and never shown. Leave it empty to keep the key that is stored.",
    )
    forget_secret = forms.BooleanField(label="Forget the stored key", required=False)

    class Meta:
        model = ModelProvider
        fields = ("key", "title", "dialect", "base_url", "secret", "forget_secret", "aliases", "names", "is_enabled")

    def clean_secret(self) -> str:
        secret: str = self.cleaned_data["secret"].strip()
        if secret and not table.is_sendable(secret):
            raise ValidationError("A key has letters, digits and signs only. Copy it again.", code="secret")
        return secret

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        moved = {"base_url", "dialect"} & {*self.changed_data}
        if self.instance.encrypted_key and moved and not given.get("secret") and not given.get("forget_secret"):
            # Whoever may change the address must not learn the key by having it sent there.
            message = "The provider listens elsewhere now. Enter its key again, or forget the stored one."
            self.add_error("secret", ValidationError(message, code="moved"))
        return given

    def save(self, commit: bool = True) -> ModelProvider:
        given = self.cleaned_data
        if given["secret"] or given["forget_secret"]:
            self.instance.set_secret(given["secret"])
        row: ModelProvider = super().save(commit)
        return row


@admin.register(ModelProvider)
class ModelProviderAdmin(admin.ModelAdmin):
    """Superusers alone: a key is money, and an address is where prompts go."""

    form = ProviderForm
    list_display = ("title", "key", "dialect", "base_url", "has_key", "state")
    search_fields = ("key", "title")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    @admin.display(boolean=True, description="Key")
    def has_key(self, row: ModelProvider) -> bool:
        return bool(row.encrypted_key)

    @admin.display
    def state(self, row: ModelProvider) -> str:
        return table.provider_from_row(row).reason or "Ready"
