"""API views of the participants of a thread."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.request import Request

from agentcms.api.parsers import json_object_body
from agentcms.api.responses import json_response
from agentcms.api.views import JSONView
from agentcms.errors import BadRequest, NotFound
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.api.idempotency import idempotent_if
from agents_app.api.strict_requests import warning_payloads
from memory_app.api.lookups import check_changeable_thread, get_changeable_thread, get_requested_thread
from memory_app.api.representation import participant_body
from memory_app.api.strict_requests import checking_body
from memory_app.history.participants import (
    MAX_FUNCTIONAL_ROLE,
    MAX_PARTICIPANT_NAME,
    add_participant,
    possible_participants,
)
from memory_app.models import Thread

MEMBER_MESSAGE = "Name an active member of the team of the thread's agent."
MAX_LENGTHS = {"name": MAX_PARTICIPANT_NAME, "functionalRole": MAX_FUNCTIONAL_ROLE}


class ParticipantsView(JSONView):
    """The members who take part in a thread of somebody else."""

    def get(self, request: Request, thread_id: str) -> HttpResponse:
        participants = get_requested_thread(request, thread_id).participants.select_related("user")
        return json_response({"participants": [participant_body(participant) for participant in participants]})

    @idempotent_if(check_changeable_thread)
    def post(self, request: Request, thread_id: str) -> HttpResponse:
        thread = get_changeable_thread(request, thread_id)
        body = json_object_body(request)
        with checking_body(request, body, "username", *MAX_LENGTHS) as names:
            user, texts = read_participant(thread, body)
        participant, is_new = add_participant(thread, user, texts["name"], texts["functionalRole"])
        return json_response(participant_body(participant) | warning_payloads(names.unknown), 201 if is_new else 200)


def read_participant(thread: Thread, body: JSONObject) -> tuple[User, dict[str, str]]:
    """Return the member that a body names, with name and role in the thread. Raise BadRequest."""
    texts = {name: stripped_text(body.get(name)) for name in MAX_LENGTHS}
    faults = [
        (name, f"This must be a text of at most {MAX_LENGTHS[name]} characters.")
        for name, text in texts.items()
        if not isinstance(text, str) or len(text) > MAX_LENGTHS[name]
    ]
    username = body.get("username")
    user = possible_participants(thread).filter(username=username).first() if isinstance(username, str) else None
    if user is None:
        faults.append(("username", MEMBER_MESSAGE))
    if faults or user is None:
        raise BadRequest("request body", faults)
    return user, texts


def stripped_text(value: object) -> JSONValue:
    """Return a text without the space around it, blank for a missing one. Another value stays, to be reported."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else value


class ParticipantView(JSONView):
    """One participant of a thread."""

    def delete(self, request: Request, thread_id: str, user_id: str) -> HttpResponse:
        thread = get_changeable_thread(request, thread_id)
        # 18 digits fit the 64 bits of the column.
        is_number = re.fullmatch(r"[0-9]{1,18}", user_id) is not None
        count, _ = thread.participants.filter(user=int(user_id)).delete() if is_number else (0, {})
        if not count:
            raise NotFound(f"User {user_id} takes no part in thread {thread_id}")
        return json_response({"success": True, "message": "Participant removed"})
