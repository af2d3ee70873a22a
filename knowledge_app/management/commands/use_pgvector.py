"""The command that lets PostgreSQL compare vectors."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, transaction

from agentcms.vectors import pgvector
from knowledge_app.approximate.hnsw import enqueue_refresh
from knowledge_app.models import Chunk, KnowledgeIndex
from memory_app.models import Vector


class Command(BaseCommand):
    help = (
        "Lets PostgreSQL compare the vectors of messages and knowledge bases by the extension pgvector. Locks their "
        "tables while it adds a column to each. --off removes the columns again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--off", action="store_true", help="compare vectors in the processes again")

    def handle(self, *args: object, off: bool, **options: object) -> None:
        try:
            turn_off() if off else turn_on()
        except (pgvector.PgvectorUnavailable, DatabaseError) as error:
            raise CommandError(f"Nothing was changed. {error}") from error
        self.stdout.write("pgvector is no longer used." if off else "pgvector is used for all searches of vectors.")


def turn_on() -> None:
    with transaction.atomic():
        pgvector.enable([Vector._meta.db_table, Chunk._meta.db_table])
        enqueue_refresh()


def turn_off() -> None:
    with transaction.atomic():
        KnowledgeIndex.objects.filter(has_ann_index=True).update(has_ann_index=False)
        pgvector.disable()
