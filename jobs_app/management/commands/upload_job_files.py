"""The command that moves the files of jobs from the local folder to the bucket of STORAGE_URL."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.core.files.base import File
from django.core.management.base import BaseCommand, CommandError

from jobs_app.files import file_storage
from jobs_app.models import JobFile


class Command(BaseCommand):
    help = "Moves exports and uploads from DATA_DIR/exchange to the bucket of STORAGE_URL. Repeat it after an error."

    def handle(self, *args: object, **options: object) -> None:
        if not settings.STORAGE_URL:
            raise CommandError("Set STORAGE_URL to the bucket first: s3://bucket?endpoint=https://…")
        moved = sum(move_to_storage(file) for file in JobFile.objects.order_by("pk"))
        self.stdout.write(f"Moved {moved} files.")


def move_to_storage(file: JobFile) -> bool:
    """Save a local file in the storage and delete it. Return False if this machine does not have it."""
    path = Path(settings.DATA_DIR, "exchange", file.name)
    if not path.is_file():
        return False
    if not file_storage().exists(file.name):
        with path.open("rb") as content:
            name = file_storage().save(file.name, File(content))
            JobFile.objects.filter(pk=file.pk).update(name=name)
    path.unlink()
    return True
