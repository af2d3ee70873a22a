"""Views of the API description."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString
from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request

from agentcms.api.renderers import encode_json
from agentcms.api.views import JSONView
from agentcms.cache import cache_result
from agentcms.openapi.document import build_document
from agentcms.openapi.reference import reference_context
from agents_app.configuration.schema import AgentCreate

# No host can have a name that ends in .invalid (RFC 6761), so no other text of the reference is replaced.
ANY_ORIGIN = "https://origin.invalid"  # replaced by the origin of the request


class SchemaView(JSONView):
    """The OpenAPI 3.1 document."""

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(encoded_document(), "application/json")


@cache_result
def encoded_document() -> bytes:
    """Return the document as JSON. It has 700 kB, and takes longer to encode than to send."""
    return encode_json(build_document())


class AgentSchemaView(JSONView):
    """The JSON Schema of an agent in a create request."""

    def get(self, request: Request) -> HttpResponse:
        schema: dict[str, Any] = AgentCreate.model_json_schema(by_alias=True)
        return HttpResponse(
            encode_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}), "application/json"
        )


class DocsView(JSONView):
    """The API reference as a page. It redirects a browser without a session to the sign-in page."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return super().perform_content_negotiation(request, force=True)  # always HTML, whatever the Accept header

    def handle_exception(self, exception: Exception) -> Any:
        if isinstance(exception, NotAuthenticated) and "text/html" in self.request.META.get("HTTP_ACCEPT", ""):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exception)

    def get(self, request: Request) -> HttpResponse:
        origin = escape(request.build_absolute_uri("/").rstrip("/"))
        reference = SafeString(render_reference().replace(ANY_ORIGIN, origin))
        return render(request._request, "api/docs.html", {"reference": reference, "nav": "api"})


@cache_result
def render_reference() -> str:
    """Return the reference as HTML, for ANY_ORIGIN. It is the same for every user and changes only with the code."""
    return render_to_string("api/_reference.html", reference_context(ANY_ORIGIN))
