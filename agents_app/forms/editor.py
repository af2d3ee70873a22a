"""The form of the editor."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from pydantic import BaseModel

from access_app.caller import Caller
from agentcms.wire.canonical import canonical
from agentcms.wire.json_types import JSONObject
from agentcms.wire.validation import NOT_AN_OBJECT_MESSAGE
from agents_app.configuration import schema
from agents_app.forms.editor_sections import KEY_LIST_FIELDS, EditorSections
from agents_app.forms.field_values import (
    DURABLE_MODES,
    MODEL_SETTINGS,
    apply_sampling,
    to_form_values,
)
from agents_app.forms.fields import (
    InputGroupField,
    JSONNumberField,
    KeyListField,
    OptionalKeyField,
    RawTextField,
    ScorersField,
    scorer_error,
)
from agents_app.forms.memory.composing import compose_memory_options, memory_error
from agents_app.forms.memory.inputs import MEMORY_KINDS, MemoryOptionsField
from agents_app.forms.model_fields import METADATA_MEMBERS, MODEL_MEMBERS, OPTION_MEMBERS
from agents_app.forms.objects.field import ObjectField
from agents_app.forms.objects.members import is_line
from agents_app.forms.processors_field import ProcessorsField
from agents_app.forms.tools.background import background_error, compose_background
from agents_app.forms.tools.knowledge import compose_knowledge
from agents_app.forms.tools.mcp import compose_selection
from agents_app.forms.variables_field import VariablesField
from agents_app.forms.variants.issues import variant_error
from agents_app.models import Agent
from agents_app.registry import Kind, registry

RESTORED_FIELDS = ("name", "description", "instructions", "provider", "model_name", "memory", *KEY_LIST_FIELDS)
FIELD_FOR_PATH = {"model.provider": "provider", "model.name": "model_name"}


class AgentEditForm(EditorSections):
    """The editor's form. Fields that differ from `base`, the configuration it was opened with, are changes."""

    name = RawTextField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    description = RawTextField(
        required=False, widget=forms.Textarea(attrs={"rows": 2}), help_text="Shown in the list of agents."
    )
    instructions = RawTextField(
        required=False, widget=forms.Textarea(attrs={"data-editor": "text", "rows": 20, "spellcheck": "false"})
    )
    request_context_schema = VariablesField()
    provider = RawTextField(max_length=256, widget=forms.TextInput(attrs={"list": "providers", "autocomplete": "off"}))
    model_name = RawTextField(
        label="Model", max_length=256, widget=forms.TextInput(attrs={"list": "model-names", "autocomplete": "off"})
    )
    temperature = JSONNumberField(required=False)
    top_p = JSONNumberField(required=False, label="Top P")
    max_tokens = JSONNumberField(required=False, label="Max tokens")
    model_rest = ObjectField(label="Other settings", members=MODEL_MEMBERS)
    tools = KeyListField(required=False)
    workflows = KeyListField(required=False)
    agents = KeyListField(required=False, label="Sub-agents")
    integration_tools = KeyListField(required=False)
    background_inputs = InputGroupField("Background tasks")
    memory_kind = forms.ChoiceField(required=False, label="Memory", choices=MEMORY_KINDS)
    memory = OptionalKeyField(required=False, max_length=256, widget=forms.Select, label="Registered memory")
    memory_options = MemoryOptionsField(required=False)
    variant_inputs = InputGroupField("Variants")
    scorers = ScorersField(required=False)
    input_processors = ProcessorsField()
    output_processors = ProcessorsField()
    default_options = ObjectField(members=OPTION_MEMBERS)
    durable_mode = forms.ChoiceField(
        required=False,
        label="Durable",
        choices=DURABLE_MODES,
        help_text="A durable run continues in another process when its own stops.",
    )
    durable_steps = JSONNumberField(required=False, label="Most steps of a durable run")
    metadata = ObjectField(members=METADATA_MEMBERS)

    version_name = RawTextField(required=False, max_length=100, label="Version name")
    message = RawTextField(required=False, max_length=500, widget=forms.Textarea(attrs={"rows": 2}))

    config_model: type[BaseModel] = schema.AgentConfig

    def __init__(
        self, data: QueryDict | None = None, *, base: JSONObject, user: Caller, agent: Agent, **options: Any
    ) -> None:
        self.base, self.user, self.agent = base, user, agent
        super().__init__(data, initial=to_form_values(base), **options)
        memories = [(entry.key, entry.title) for entry in registry.entries(Kind.MEMORY)]
        keys = [base["memory"]] if isinstance(base["memory"], str) else []
        missing = [key for key in keys if key and registry.get(Kind.MEMORY, key) is None]
        self.fields["memory"].widget.choices = [
            ("", "None"),
            *memories,
            *((key, f"{key} (not registered)") for key in missing),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self.restore_stored_texts(cleaned)
        if "scorers" in cleaned:
            cleaned["scorers"] = self.restore_scorers(cleaned["scorers"])
        if not {"provider", "model_name", "model_rest", *MODEL_SETTINGS} - cleaned.keys():
            cleaned["model"] = self.compose_model(cleaned)
        # A page that the previous release rendered lacks the newer fields, here and below. They stay as stored.
        if "durable_mode" in self.data and not {"durable_mode", "durable_steps"} - cleaned.keys():
            cleaned["durable"] = self.compose_durable(cleaned["durable_mode"], cleaned["durable_steps"])
        if "memory" in cleaned:
            cleaned["memory"] = self.compose_memory(cleaned)
        if "knowledge" in self.data:
            cleaned["knowledge"] = compose_knowledge(self.data, self.base["knowledge"])
        if "mcp_clients" in self.data:
            cleaned["mcp_clients"] = compose_selection(self.data, self.base["mcp_clients"])
        if "background_tasks" in self.data:
            cleaned["background_tasks"], errors = compose_background(self.data, self.base["background_tasks"])
            for error in errors:
                self.add_error("background_inputs", error)
        if "conditional" in self.data:
            cleaned |= self.compose_variants()
        self.validate_config(cleaned)
        return cleaned

    def compose_variants(self) -> JSONObject:
        values = self.variants.compose(self.base["conditional"], self.base["context_keys"])
        for error in self.variants.errors:
            self.add_error("variant_inputs", error)
        return dict(zip(("conditional", "context_keys"), values, strict=True))

    def restore_stored_texts(self, cleaned: dict[str, Any]) -> None:
        """Replace texts that a browser cannot send as they are stored, if nobody changed them."""
        model = self.base["model"]
        stored = {**self.base, "provider": model.get("provider"), "model_name": model.get("name")}
        for name in RESTORED_FIELDS:
            field: Any = self.fields[name]
            if cleaned.get(name) and isinstance(stored[name], str | list):
                cleaned[name] = field.restore(cleaned[name], stored[name])

    def restore_scorers(self, chosen: JSONObject) -> JSONObject:
        """Return the chosen scorers with the stored members that have no input, and the stored ones without a row."""
        stored = self.base["scorers"]
        hidden = {key: choice for key, choice in stored.items() if not is_line(key)}
        return {**hidden, **{key: apply_sampling(stored.get(key, {}), choice) for key, choice in chosen.items()}}

    def compose_model(self, cleaned: dict[str, Any]) -> JSONObject:
        rest = cleaned["model_rest"]
        model = {"provider": cleaned["provider"], "name": cleaned["model_name"]}
        model |= {wire: cleaned[name] for name, wire in MODEL_SETTINGS.items() if cleaned[name] is not None}
        if not isinstance(rest, dict):
            self.add_error("model_rest", NOT_AN_OBJECT_MESSAGE)
            return model
        # In JSON, the other settings may name one that has a field, and only one of the two values would be stored.
        if duplicates := sorted(model.keys() & rest.keys()):
            self.add_error("model_rest", f"Set {', '.join(duplicates)} in its own field instead.")
        return {**rest, **model}

    def compose_durable(self, mode: str, steps: object) -> object:
        if steps is None:
            return {"yes": True, "no": False}.get(mode)
        if mode != "yes":
            self.add_error("durable_steps", "Only a durable run has this limit. Choose Yes, or leave this blank.")
        if not isinstance(steps, int) or steps < 1:
            self.add_error("durable_steps", "This must be a whole number above 0.")
            return self.base["durable"]
        # The stored object may have more members, for which there is no input.
        stored = self.base["durable"]
        return {**(stored if isinstance(stored, dict) else {}), "maxSteps": steps}

    def compose_memory(self, cleaned: dict[str, Any]) -> object:
        """Return the memory of the chosen kind. A page of the previous release has no kind and knows only keys."""
        if "memory_kind" not in self.data:
            return self.base["memory"] if isinstance(self.base["memory"], dict) else cleaned["memory"]
        if cleaned.get("memory_kind") == "options":
            try:
                return compose_memory_options(self.base["memory"], cleaned["memory_options"])
            except ValidationError as error:
                self.add_error("memory_options", error)
                return self.base["memory"]
        if cleaned.get("memory_kind") != "registered":
            return None
        if cleaned["memory"] is None:
            self.add_error("memory", "Choose a registered memory.")  # removes the value
            return self.base["memory"]
        return cleaned["memory"]

    def validate_config(self, cleaned: dict[str, Any]) -> None:
        """Validate with the schema of agents, and add each issue to its field."""
        try:
            # Partial, because fields with an error of their own are missing.
            schema.validate_fields(schema.as_partial(self.config_model), self.body(cleaned))
        except schema.ConfigError as error:
            for issue in error.issues:
                self.add_error(*self.error_of_issue(issue))
            if any(issue.field.startswith("conditional") for issue in error.issues):
                cleaned["conditional"] = self.base["conditional"]  # a comparison shows no variants that are invalid

    def body(self, cleaned: dict[str, Any]) -> JSONObject:
        return schema.to_wire_dict(cleaned)

    def error_of_issue(self, issue: schema.Issue) -> tuple[str | None, ValidationError]:
        """Return the field of an issue, and the error to show: that of its input, where a field has several."""
        if issue.field in FIELD_FOR_PATH:
            return FIELD_FOR_PATH[issue.field], ValidationError(issue.message, code="invalid")
        head, _, path = issue.field.partition(".")
        if head == "memory" and path:
            return "memory_options", memory_error(path, issue.message)
        if head == "conditional":
            return "variant_inputs", variant_error(path, issue.message, self.variants.rows)
        if head == "backgroundTasks":
            return "background_inputs", background_error(path, issue.message, self.data)
        if head == "scorers":
            return "scorers", scorer_error(path, issue.message)
        # The exception turns the path into the name of a field, and a message with the rest of the path.
        (name, messages), *_ = schema.ConfigError([issue]).message_dict.items()
        name = "model_rest" if name == "model" else name
        return (name if name in self.fields else None), ValidationError(messages[0], code="invalid")

    def changed_fields(self) -> JSONObject:
        """Return the configuration fields that differ from those the form was opened with."""
        cleaned = self.cleaned_data
        return {
            name: cleaned[name]
            for name in schema.FIELDS
            if name in cleaned and canonical(cleaned[name]) != canonical(self.base[name])
        }

    def configuration(self) -> JSONObject:
        """Return the whole configuration of the form. Invalid fields have the value they were opened with."""
        return {name: self.cleaned_data.get(name, self.base[name]) for name in schema.FIELDS}
