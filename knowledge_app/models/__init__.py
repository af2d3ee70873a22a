"""Models of the app, one file each."""

from knowledge_app.models.chunk import Chunk
from knowledge_app.models.document import Document, IndexedDocument
from knowledge_app.models.knowledge_base import KnowledgeBase
from knowledge_app.models.knowledge_index import KnowledgeIndex

__all__ = ["Chunk", "Document", "IndexedDocument", "KnowledgeBase", "KnowledgeIndex"]
