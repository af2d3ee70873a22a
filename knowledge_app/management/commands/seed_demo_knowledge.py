"""The knowledge base of the demo: the documentation of this product, with an agent that answers from it."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from agents_app.editing.change_context import change
from agents_app.models import Agent
from knowledge_app.documents.adding import add_content
from knowledge_app.indexing.rebuild import create_live_index
from knowledge_app.models import KnowledgeBase

BASE_KEY = "product-docs"
AGENT_ID = "docs-guide"
INSTRUCTIONS = """
Answer questions about Agent CMS from its documentation.

Search product-docs first. Name the document and the heading of each passage that you use.
If nothing fits, say so."""


class Command(BaseCommand):
    """Creates the knowledge base of the demo, unless it exists or the demo agents are missing."""

    help = "Create a knowledge base of this documentation and an agent that answers from it."

    def handle(self, *args: object, **options: object) -> None:
        if KnowledgeBase.objects.filter(key=BASE_KEY).exists() or not Agent.objects.exists():
            return
        with transaction.atomic():
            base = create_base()
            documents = [
                add_content(base, path.name, path.read_bytes(), metadata={"chapter": path.stem})
                for path in sorted((settings.BASE_DIR / "docs").glob("*.md"))
            ]
            create_agent()
        self.stdout.write(f"The knowledge base {BASE_KEY} has {len(documents)} documents. Workers index them.")


def create_base() -> KnowledgeBase:
    base = KnowledgeBase.objects.create(
        key=BASE_KEY,
        name="Product documentation",
        description="Everything about Agent CMS: editing, publishing, running, memory, tools, evaluation, operation.",
        filterable=["chapter"],
    )
    create_live_index(base)
    return base


def create_agent() -> None:
    if Agent.objects.filter(pk=AGENT_ID).exists():
        return
    with change(message="Answers from the documentation"):
        Agent.objects.create(
            id=AGENT_ID,
            name="Documentation guide",
            description="Answers questions about Agent CMS from its documentation, and names the page.",
            instructions=INSTRUCTIONS.strip(),
            model={"provider": "demo", "name": "echo"},
            knowledge={BASE_KEY: {"topK": 3}},
            metadata={"tags": ["documentation"]},
        )
