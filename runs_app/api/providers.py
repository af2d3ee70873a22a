"""API view of model providers."""

from __future__ import annotations

from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.wire.json_types import JSONObject
from runs_app.providers import cached_providers
from runs_app.providers.cached_providers import Provider


class ProvidersView(JSONView):
    """List of model providers and their availability."""

    def get(self, request: Request) -> HttpResponse:
        return json_response({"providers": [provider_body(provider) for provider in cached_providers.get_table()]})


def provider_body(provider: Provider) -> JSONObject:
    """Return the body of a provider, without its API key."""
    return {
        "id": provider.key,
        "name": provider.title,
        "envVar": provider.missing_setting,
        "connected": provider.is_available,
        "reason": provider.reason or None,
        "models": list(provider.names),
    }
