"""The page of the people who take part in one of the user's own threads."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from agentcms.web.text_direction import PersonTextField, isolate_text
from memory_app.history.participants import (
    MAX_FUNCTIONAL_ROLE,
    MAX_PARTICIPANT_NAME,
    add_participant,
    possible_participants,
)
from memory_app.models import Participant, Thread
from memory_app.views.links import own_realm, thread_url


def member_label(user: User) -> str:
    name = user.get_full_name()
    return f"{isolate_text(name)} ({user.get_username()})" if name else str(user.get_username())


class ParticipantForm(forms.Form):
    """A member of the team of the thread's agent, with name and role in the conversation."""

    member = forms.ModelChoiceField(
        queryset=User.objects.none(),
        empty_label="Choose a member",
        error_messages={"invalid_choice": "Choose an active member of the agent's team."},
    )
    name = PersonTextField(
        required=False, max_length=MAX_PARTICIPANT_NAME, help_text="As the agent reads it. Blank takes the username."
    )
    functional_role = PersonTextField(
        required=False,
        max_length=MAX_FUNCTIONAL_ROLE,
        label="Role in the conversation",
        help_text="Such as reviewer. The agent reads it with each message.",
    )

    def __init__(self, members: QuerySet[User], data: QueryDict | None = None) -> None:
        super().__init__(data)
        field: Any = self.fields["member"]
        field.queryset = members
        field.label_from_instance = member_label


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_participants(request: HttpRequest, key: str) -> HttpResponse:
    """List the people who take part in one of the user's own threads, and add a member."""
    thread = get_own_page_thread(request, key)
    members = possible_participants(thread)
    form = ParticipantForm(members, request.POST or None)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        participant, is_new = add_participant(thread, cleaned["member"], cleaned["name"], cleaned["functional_role"])
        messages.success(request, f"{participant.name} {'takes part now' if is_new else 'was changed'}.")
        return redirect("threads:participants", key)
    context = {
        "nav": "runs",
        "thread": thread,
        "form": form,
        "has_members": members.exists(),
        "participants": thread.participants.select_related("user"),
        "back": thread_url(request, thread),
    }
    return render(request, "threads/participants.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def remove_participant(request: HttpRequest, key: str, user_id: int) -> HttpResponse:
    """Remove a member from one of the user's own threads."""
    thread = get_own_page_thread(request, key)
    participant = get_object_or_404(Participant, thread=thread, user=user_id)
    participant.delete()
    messages.success(request, f"{participant.name} no longer takes part.")
    return redirect("threads:participants", key)


def get_own_page_thread(request: HttpRequest, key: str) -> Thread:
    # The thread of a sub-agent has the participants of the conversation above it.
    return get_object_or_404(Thread.objects.select_related("agent"), key=key, realm=own_realm(request), parent=None)
