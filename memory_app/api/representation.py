"""Representation of threads in the API."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from memory_app.models import Participant, Thread


def thread_body(thread: Thread) -> JSONObject:
    """Return the body of a thread."""
    return {
        "id": thread.key,
        "resourceId": thread.resource_key,
        "title": thread.title,
        "metadata": thread.metadata or {},
        "createdAt": thread.created_at,
        "updatedAt": thread.updated_at,
    }


def participant_body(participant: Participant) -> JSONObject:
    """Return the body of a participant, with the user's name."""
    return {
        "userId": participant.user_id,
        "username": participant.user.get_username(),
        "name": participant.name,
        "functionalRole": participant.functional_role or None,
        "createdAt": participant.created_at,
    }
