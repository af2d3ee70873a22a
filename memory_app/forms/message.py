"""The form of a message or a signal to a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from agents_app.editing.archive_guard import AgentArchived
from agents_app.forms.fields import RawTextField
from agents_app.forms.objects.members import parse_text_or_json
from agents_app.models import Agent
from memory_app.history.signal_markup import NAME_MESSAGE, Signal, is_name
from memory_app.history.wire_messages import MAX_MESSAGE_KB
from memory_app.models import Thread
from runs_app.resolution import stored_agents
from runs_app.thread_signals.sending import IfActive, IfIdle, send_signal

AS_MESSAGE, AS_QUEUED, AS_SIGNAL = "message", "queued", "signal"
KINDS = (
    (AS_MESSAGE, "Message, which joins the active run"),
    (AS_QUEUED, "Message for a run of its own"),
    (AS_SIGNAL, "Signal: something that happened"),
)
IDLE_CHOICES = ((IfIdle.WAKE.value, "Start a run"), (IfIdle.PERSIST.value, "Wait for the next run"))
FIELD_BY_PATH = {"type": "type", "attributes": "attributes", "contents": "message"}


class SendForm(forms.Form):
    """A message or a signal to a thread."""

    message = RawTextField(
        label="Text",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto", "placeholder": "Type a message", "data-search": True}),
    )
    kind = forms.ChoiceField(choices=KINDS, initial=AS_MESSAGE, label="Send as")
    if_idle = forms.ChoiceField(choices=IDLE_CHOICES, initial=IfIdle.WAKE.value, label="If no run is active")
    type = forms.CharField(
        required=False,
        max_length=100,
        label="Kind of signal",
        help_text="The tag that the agent reads, such as notification.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "notification"}),
    )
    attributes = forms.CharField(
        required=False,
        label="Attributes of the signal",
        help_text="One per line, such as source = github.",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )

    def clean_message(self) -> str:
        text: str = self.cleaned_data["message"]
        # Not `max_length`, which counts characters: the API limits the bytes.
        if len(text.encode()) > MAX_MESSAGE_KB * 1024:
            raise forms.ValidationError(f"A message must not exceed {MAX_MESSAGE_KB} KB.")
        return text

    def clean_type(self) -> str:
        name: str = self.cleaned_data["type"] or "notification"
        if not is_name(name):
            raise forms.ValidationError(NAME_MESSAGE)
        return name

    def clean_attributes(self) -> JSONObject:
        attributes: JSONObject = {}
        for line in filter(str.strip, self.cleaned_data["attributes"].splitlines()):
            name, separator, value = (part.strip() for part in line.partition("="))
            if not separator or not is_name(name):
                raise forms.ValidationError(f"“{line.strip()}” is not in the form name = value.")
            attributes[name] = parse_text_or_json(value)
        return attributes

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        # The page hides the fields of a signal from a message, and nobody would see what is wrong there.
        if cleaned.get("kind") in (AS_MESSAGE, AS_QUEUED):
            for name in ("type", "attributes"):
                self.errors.pop(name, None)
        if (
            cleaned.get("kind") != AS_SIGNAL
            and not cleaned.get("message", "").strip()
            and "message" not in self.errors
        ):
            self.add_error("message", "Enter a message.")
        return cleaned

    @property
    def signal(self) -> Signal:
        """The signal of valid fields. A message has no attributes."""
        cleaned = self.cleaned_data
        if cleaned["kind"] == AS_SIGNAL:
            return Signal(cleaned["type"], cleaned["message"], attributes=cleaned["attributes"])
        return Signal("user", cleaned["message"])

    def send(self, request: HttpRequest, thread: Thread) -> str:
        """Send the message. Return what became of it. Add what is wrong to the form and return a blank text."""
        cleaned = self.cleaned_data
        try:
            agent = stored_agents.get(thread.agent_id or "", user=request.user)
            sent = send_signal(
                thread,
                self.signal,
                user=request.user,
                agent=agent,
                if_active=IfActive.QUEUE if cleaned["kind"] == AS_QUEUED else IfActive.DELIVER,
                if_idle=IfIdle(cleaned["if_idle"]),
            )
        except (ConfigError, ApiError, AgentArchived) as error:
            self.add_errors(error)
            return ""
        # The view has checked both: the agent was deleted since then, or the user lost the role.
        except (Agent.DoesNotExist, PermissionDenied):
            raise Http404 from None
        return "Sent to the agent." if sent.run_id else "Sent. The next run gets it."

    def add_errors(self, error: Exception) -> None:
        issues: Mapping[str, str] = (
            {issue.field: issue.message for issue in error.issues}
            if isinstance(error, ConfigError)
            else {"": error.error if isinstance(error, ApiError) else str(error)}
        )
        for path, message in issues.items():
            name = next((field for part, field in FIELD_BY_PATH.items() if f".{part}" in path), "message")
            self.add_error(name, message)
