"""Representation of threads in the API."""

from __future__ import annotations

from typing import Any

from memory_app.models import Participant, Thread


def thread_body(thread: Thread) -> dict[str, Any]:
    """Return the body of a thread."""
    return {
        "id": thread.key,
        "resourceId": thread.resource_key,
        "title": thread.title,
        "metadata": thread.metadata or {},
        "createdAt": thread.created_at,
        "updatedAt": thread.updated_at,
    }


def participant_body(participant: Participant) -> dict[str, Any]:
    """Return the body of a participant, with the user's name."""
    return {
        "userId": participant.user_id,
        "username": participant.user.get_username(),
        "name": participant.name,
        "functionalRole": participant.functional_role or None,
        "createdAt": participant.created_at,
    }
