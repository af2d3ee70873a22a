"""Signal receivers of jobs. `apps` imports this module."""

from __future__ import annotations

from django.db.models.signals import post_delete
from django.dispatch import receiver

from agentcms.db.after_commit import call_after_commit
from jobs_app.files import file_storage
from jobs_app.models import JobFile


@receiver(post_delete, sender=JobFile)
def delete_stored_file(instance: JobFile, **kwargs: object) -> None:
    """Delete the file of a deleted row. If the storage is unavailable, the nightly clean-up deletes it."""
    call_after_commit(file_storage().delete, instance.name)
