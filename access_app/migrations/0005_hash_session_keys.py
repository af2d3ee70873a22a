"""Replace the stored keys of sessions with their hashes. Their users stay signed in."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import migrations
from django.db.models.functions import Length

BATCH_SIZE = 1000
KEY_LENGTH = 32  # characters of a key; a hash has 40


def hash_keys(apps: Any, schema_editor: Any) -> None:
    Session = apps.get_model("sessions", "Session")
    plain = Session.objects.annotate(length=Length("session_key")).filter(length=KEY_LENGTH)
    while keys := list(plain.values_list("session_key", flat=True)[:BATCH_SIZE]):
        for key in keys:
            hashed = hashlib.sha256(key.encode()).hexdigest()[:40]
            Session.objects.filter(session_key=key).update(session_key=hashed)


def delete_sessions(apps: Any, schema_editor: Any) -> None:
    """Sign everybody out: a hash has no way back."""
    apps.get_model("sessions", "Session").objects.all().delete()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("access_app", "0004_reword_labels"),
        ("sessions", "0001_initial"),
    ]

    operations = [migrations.RunPython(hash_keys, delete_sessions)]
