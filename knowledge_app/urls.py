"""URLs of the pages of knowledge bases."""

from django.urls import path

from knowledge_app.views import bases, documents

app_name = "knowledge"

BASE = "knowledge/<str:key>"

urlpatterns = [
    path("knowledge", bases.base_list, name="list"),
    path("knowledge/+new", bases.create, name="create"),  # no ID has a plus sign
    path(BASE, bases.view, name="view"),
    path(f"{BASE}/settings", bases.edit, name="edit"),
    path(f"{BASE}/reindex", bases.reindex, name="reindex"),
    path(f"{BASE}/delete", bases.delete, name="delete"),
    path(f"{BASE}/documents", bases.documents, name="documents"),
    path(f"{BASE}/upload", documents.upload, name="upload"),
    path(f"{BASE}/text", documents.paste, name="paste"),
    path(f"{BASE}/url", documents.fetch, name="fetch"),
    path(f"{BASE}/documents/<uuid:document_id>", documents.view_document, name="document"),
    path(f"{BASE}/documents/<uuid:document_id>/delete", documents.delete_confirmed, name="delete_document"),
]
