"""URLs of the API of knowledge bases and of vectors."""

from django.urls import path

from knowledge_app.api import bases, documents, vectors

BASE_PATH = "knowledge/<str:base_id>"
VECTOR_PATH = "vector/<str:vector_id>"

urlpatterns = [
    path("knowledge", bases.BasesView.as_view(), name="api-knowledge-bases"),
    path(BASE_PATH, bases.BaseView.as_view(), name="api-knowledge-base"),
    path(f"{BASE_PATH}/search", bases.SearchKnowledgeView.as_view(), name="api-knowledge-search"),
    path(f"{BASE_PATH}/reindex", bases.ReindexView.as_view(), name="api-knowledge-reindex"),
    path(f"{BASE_PATH}/documents", documents.DocumentsView.as_view(), name="api-knowledge-documents"),
    path(f"{BASE_PATH}/documents/<str:document_id>", documents.DocumentView.as_view(), name="api-knowledge-document"),
    path("vectors", vectors.VectorsView.as_view(), name="api-vectors"),
    path("embedders", vectors.EmbeddersView.as_view(), name="api-embedders"),
    path(f"{VECTOR_PATH}/indexes", vectors.IndexesView.as_view(), name="api-vector-indexes"),
    path(f"{VECTOR_PATH}/indexes/<str:index_id>", vectors.IndexView.as_view(), name="api-vector-index"),
    path(f"{VECTOR_PATH}/create-index", vectors.CreateIndexView.as_view(), name="api-vector-create-index"),
    path(f"{VECTOR_PATH}/upsert", vectors.UpsertView.as_view(), name="api-vector-upsert"),
    path(f"{VECTOR_PATH}/query", vectors.QueryView.as_view(), name="api-vector-query"),
]
