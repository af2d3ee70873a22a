"""Pages that add, show and delete documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from access_app.caller import Caller
from access_app.role import Role
from agentcms.errors import ApiError
from agentcms.plural import pluralize
from agentcms.web.dialogs import redirect_page, render_dialog
from agentcms.web.template_context import TemplateContext
from agentcms.web.uploads import accepts_upload
from agentcms.wire.json_types import JSONObject
from agents_app.views.access import GET_POST
from knowledge_app.documents.adding import add_content, add_text, add_url, delete_document
from knowledge_app.forms import MetadataForm, TextForm, UrlForm
from knowledge_app.models import Document, KnowledgeBase
from knowledge_app.views.lookups import base_permissions, get_page_base, get_page_document


@require_POST
@login_required
@accepts_upload
def upload(request: HttpRequest, key: str) -> HttpResponse:
    """Add files, each for itself. The script of the page sends one at a time and reads JSON."""
    base = get_page_base(request, key, Role.EDITOR)
    form = MetadataForm(request.POST, base=base)
    if form.is_valid():
        results = [add_file(base, file, form.metadata, request.user) for file in request.FILES.getlist("files")]
    else:
        results = [{"name": "", "error": form.problem, "status": 422}]
    if not results:
        results = [{"name": "", "error": "Choose at least one file.", "status": 422}]
    # The script sends one file, whose status is that of the response.
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"results": results}, status=results[0].get("status", 201))
    for result in results:
        if result["error"]:
            messages.error(request, f"{result['name']}: {result['error']}".removeprefix(": "))
    added = sum(not result["error"] for result in results)
    if added:
        messages.success(request, f"{pluralize(added, 'document')} added. Indexing takes a moment.")
    return redirect("knowledge:view", base.key)


def add_file(
    base: KnowledgeBase, file: UploadedFile[Any], metadata: JSONObject | None, user: Caller
) -> TemplateContext:
    """Add a file and return its name with what is wrong with it, or a blank text, and the status of an error."""
    # One byte above the limit is enough to see that the file is too large.
    name, content = file.name or "", file.read(settings.KNOWLEDGE_MAX_DOCUMENT_BYTES + 1)
    try:
        add_content(base, name, content, metadata=metadata, media_type=file.content_type or "", user=user)
    except ApiError as error:
        return {"name": name, "error": error.error, "status": error.status}
    return {"name": name, "error": ""}


@require_POST
@login_required
def paste(request: HttpRequest, key: str) -> HttpResponse:
    """Add a pasted text."""
    base = get_page_base(request, key, Role.EDITOR)
    form = TextForm(request.POST, base=base, auto_id="text_%s")

    def add() -> Document:
        values = form.cleaned_data
        return add_text(base, values["name"], values["text"], metadata=form.metadata, user=request.user)

    return add_from_form(request, base, form, "text", add)


@require_POST
@login_required
def fetch(request: HttpRequest, key: str) -> HttpResponse:
    """Add the document at a URL."""
    base = get_page_base(request, key, Role.EDITOR)
    form = UrlForm(request.POST, base=base, auto_id="url_%s")

    def add() -> Document:
        return add_url(base, form.cleaned_data["url"].strip(), metadata=form.metadata, user=request.user)

    return add_from_form(request, base, form, "url", add)


def add_from_form(
    request: HttpRequest, base: KnowledgeBase, form: MetadataForm, field: str, add: Callable[[], Document]
) -> HttpResponse:
    """Add the document of a form, or show the form with its errors."""
    status = 422
    if form.is_valid():
        try:
            document = add()
        except ApiError as error:
            status = error.status
            form.add_error(field, error.error)
        else:
            messages.success(request, f"{document.name} was added. Indexing takes a moment.")
            return redirect("knowledge:view", base.key)
    context = {"nav": "knowledge", "base": base, "form": form, "kind": field}
    return render(request, "knowledge/add.html", context, status=status)


@require_safe
@login_required
def view_document(request: HttpRequest, key: str, document_id: UUID) -> HttpResponse:
    """Display a document with its text as it was extracted."""
    base = get_page_base(request, key)
    document = get_page_document(base, document_id)
    context = {"nav": "knowledge", "base": base, "document": document, **base_permissions(request, base)}
    return render(request, "knowledge/document.html", context)


@require_http_methods(GET_POST)
@login_required
def delete_confirmed(request: HttpRequest, key: str, document_id: UUID) -> HttpResponse:
    """Delete a document with its chunks, after a question."""
    base = get_page_base(request, key, Role.EDITOR)
    document = get_page_document(base, document_id)
    back = reverse("knowledge:view", args=[base.key])
    if request.method == "POST":
        delete_document(document)
        messages.success(request, f"{document.name} was deleted.")
        return redirect_page(request, back)
    context = {
        "nav": "knowledge",
        "title": f"Delete “{document.name}”?",
        "body": "knowledge/_delete_document.html",
        "document": document,
        "buttons": [{"label": "Delete the document", "kind": "danger"}],
        "back": back,
    }
    return render_dialog(request, context)
