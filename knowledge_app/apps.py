from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """Configuration of the app with documents and their retrieval."""

    name = "knowledge_app"
    verbose_name = "Knowledge"

    def ready(self) -> None:
        from agents_app.registry import Kind, registry
        from knowledge_app import signals  # noqa: F401  connects the receivers
        from knowledge_app.indexing import handlers  # noqa: F401  registers the job handlers
        from knowledge_app.tool.cached_bases import base_table
        from knowledge_app.tool.entries import knowledge_entries

        registry.staff_entries[Kind.KNOWLEDGE] = knowledge_entries
        registry.staff_revisions[Kind.KNOWLEDGE] = base_table.revision
        registry.staff_reloads[Kind.KNOWLEDGE] = base_table.reload
