"""The options of a memory as inputs of the editor.

The input of an option has the name `memory-<path>`, such as `memory-options.lastMessages`. Only options whose text was
changed are written, so that stored members without an input stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents_app.configuration.memory.options import DEFAULT_EMBEDDER
from agents_app.forms.objects.members import (
    format_json,
    normalize_line,
    normalize_lines,
    parse_json,
)

INPUT_PREFIX = "memory-"
MEMORY_KINDS = (("", "No memory"), ("registered", "A registered memory"), ("options", "Options of this agent"))
SCOPES = (("", "All conversations of a resource (default)"), ("thread", "One conversation"))


@dataclass(frozen=True)
class MemoryInput:
    """The input of an option. `default` is what a blank input means."""

    path: str
    label: str
    kind: str = "number"  # or text, area, json, model, choice, switch
    default: str = ""
    help: str = ""
    choices: tuple[tuple[str, str], ...] = ()

    def format(self, value: object) -> str:
        """Return the text of a stored value."""
        if self.kind == "switch":
            # An object without options of its own has the defaults, so it is on too.
            is_on = value.get("enabled") is not False if isinstance(value, dict) else bool(value)
            return "on" if is_on else ""
        # The blank choice is the default, so a stored default is shown as blank too.
        if value is None or (self.kind == "choice" and value == self.default):
            return ""
        if isinstance(value, str):
            return value
        if self.kind == "model" and isinstance(value, dict):
            return f"{value.get('provider')}/{value.get('name')}"
        return format_json(value)

    def as_sent(self, text: str) -> str:
        """Return a text as its input sends it back."""
        return normalize_lines(text) if self.kind in ("area", "json") else normalize_line(text)

    def parse(self, text: str) -> Any:
        """Return the value of a text. Raise ValidationError for JSON that cannot be read."""
        if self.kind != "number":
            return parse_json(text) if self.kind == "json" else text
        try:
            return parse_json(text)  # not only a number: false switches some options off
        except ValidationError:
            return text  # the schema says what the option may be


@dataclass(frozen=True)
class MemoryGroup:
    """Inputs under one heading. With a switch, they only count while it is on."""

    title: str
    inputs: tuple[MemoryInput, ...]
    switch: MemoryInput | None = None
    help: str = ""

    @property
    def all_inputs(self) -> Iterator[MemoryInput]:
        if self.switch:
            yield self.switch
        yield from self.inputs


MODEL_HELP = "As provider/name. Blank: the model of the agent."
TITLE = "options.generateTitle"
RECALL = "options.semanticRecall"
WORKING = "options.workingMemory"
OBSERVATIONS = "observationalMemory"

GROUPS = (
    MemoryGroup(
        "History",
        (
            MemoryInput("options.lastMessages", "Last messages", default="10", help="Enter false for none."),
            MemoryInput("options.messageHistory.maxTokens", "Max tokens of these messages", default="8000"),
        ),
    ),
    MemoryGroup(
        "Read only",
        (),
        MemoryInput("options.readOnly", "Read only", "switch"),
        "The agent stores no messages and does not change its working memory.",
    ),
    MemoryGroup(
        "Working memory",
        (
            MemoryInput(f"{WORKING}.scope", "Belongs to", "choice", "resource", choices=SCOPES),
            MemoryInput(
                f"{WORKING}.template",
                "Template",
                "area",
                help="Markdown. The agent replaces the text as a whole. Leave this blank if you give a schema.",
            ),
            MemoryInput(
                f"{WORKING}.schema",
                "JSON Schema",
                "json",
                help="Makes it an object, of which the agent sends only the members that change.",
            ),
        ),
        MemoryInput(WORKING, "Working memory", "switch"),
        "What the agent notes about a person. It is part of the instructions of every run.",
    ),
    MemoryGroup(
        "Semantic recall",
        (
            MemoryInput(f"{RECALL}.topK", "Messages", default="4"),
            MemoryInput(f"{RECALL}.messageRange", "Messages around each", default="1"),
            MemoryInput(f"{RECALL}.scope", "Searches", "choice", "resource", choices=SCOPES),
            MemoryInput("embedder", "Embedder", "text", default=DEFAULT_EMBEDDER),
        ),
        MemoryInput(RECALL, "Semantic recall", "switch"),
        "Finds earlier messages that are similar to those of the user.",
    ),
    MemoryGroup(
        "Titles",
        (
            MemoryInput(f"{TITLE}.minMessages", "From this number of messages on", default="1"),
            MemoryInput(f"{TITLE}.model", "Model", "model", help=MODEL_HELP),
            MemoryInput(f"{TITLE}.instructions", "Instructions", "area"),
        ),
        MemoryInput(TITLE, "Titles", "switch"),
        "Writes a title for each new conversation.",
    ),
    MemoryGroup(
        "Observational memory",
        (
            MemoryInput(f"{OBSERVATIONS}.model", "Model", "model", help=MODEL_HELP),
            MemoryInput(
                f"{OBSERVATIONS}.observation.messageTokens",
                "Tokens of messages",
                default="30000",
                help="The limit, above which observations replace messages.",
            ),
            MemoryInput(
                f"{OBSERVATIONS}.observation.bufferTokens",
                "Observe in advance",
                default="0.2",
                help="Whenever this share of the limit is new.",
            ),
            MemoryInput(
                f"{OBSERVATIONS}.observation.bufferActivation",
                "Replace at the limit",
                default="0.8",
                help="This share of the messages.",
            ),
            MemoryInput(
                f"{OBSERVATIONS}.observation.blockAfter",
                "Wait for observations",
                default="1.2",
                help="Above this multiple of the limit.",
            ),
            MemoryInput(f"{OBSERVATIONS}.observation.instruction", "Instruction of the observer", "area"),
            MemoryInput(f"{OBSERVATIONS}.reflection.observationTokens", "Tokens of observations", default="40000"),
            MemoryInput(f"{OBSERVATIONS}.reflection.instruction", "Instruction of the reflector", "area"),
        ),
        MemoryInput(OBSERVATIONS, "Observational memory", "switch"),
        "Replaces the older messages of a conversation by observations.",
    ),
)
ALL_INPUTS = tuple(item for group in GROUPS for item in group.all_inputs)


def kind_of(memory: object) -> str:
    """Return the kind of a stored memory, of MEMORY_KINDS."""
    if memory is None:
        return ""
    return "options" if isinstance(memory, dict) else "registered"


def value_at(memory: object, path: str) -> object:
    """Return the value at a path of a stored memory, or None."""
    for name in path.split("."):
        memory = memory.get(name) if isinstance(memory, dict) else None
    return memory


def texts_of(memory: object) -> dict[str, str]:
    """Return the texts of all inputs for a stored memory, by path."""
    return {item.path: item.format(value_at(memory, item.path)) for item in ALL_INPUTS}


class MemoryOptionsWidget(forms.Widget):
    """A widget that reads the texts of the options by path. A template renders them."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, str]:
        return {item.path: normalize_lines(data.get(f"{INPUT_PREFIX}{item.path}") or "") for item in ALL_INPUTS}


class MemoryOptionsField(forms.Field):
    """The texts of the options of a memory."""

    widget = MemoryOptionsWidget
