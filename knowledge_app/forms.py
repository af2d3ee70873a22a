"""The forms of knowledge bases and their documents."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import slugify

from agentcms.errors import BadRequest
from agentcms.ids import first_unused
from agentcms.vectors import local_embedders
from agentcms.vectors.embedders import PROVIDER_EXAMPLE
from agentcms.web.concurrent_edits import ConcurrentEditForm
from agentcms.web.text_direction import PersonTextField
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import parse_filter_of_body
from agents_app.forms.fields import OwnerField
from knowledge_app.models import KnowledgeBase
from knowledge_app.models.document import MAX_DOCUMENT_NAME_LENGTH
from knowledge_app.search.rerank import registered_rerankers
from knowledge_app.search.retrieval import DEFAULT_TOP_K, MAX_QUERY_LENGTH, MAX_TOP_K
from runs_app.embedders.provider_embedders import offered_embedders

MAX_STEM_LENGTH = 32  # of a key that is made from a name, before its number
OTHER_TEAM_MESSAGE = "You cannot create knowledge bases for this team. Choose one of your teams."
EMBEDDER_HELP = (
    "The model with which searches find passages by their meaning. Those with local/ run on this server. For a model "
    f"of a provider, which gets all texts, enter provider/model, such as {PROVIDER_EXAMPLE}. Superusers add providers "
    "under Model providers."
)
CONDITIONS = (("$eq", "is"), ("$ne", "is not"), ("$contains", "contains"), ("$gte", "at least"), ("$lte", "at most"))


class BaseForm(ConcurrentEditForm, forms.ModelForm):
    """The settings of a knowledge base. `owners` are the teams in which the user may create one."""

    filterable = forms.CharField(
        required=False,
        label="Filterable keys",
        help_text="Keys of the metadata of documents by which searches may be filtered, separated by commas.",
    )

    class Meta:
        model = KnowledgeBase
        fields = (
            "name",
            "key",
            "description",
            "owner_id",
            "embedder",
            "chunk_size",
            "chunk_overlap",
            "filterable",
            "rerank",
        )
        widgets: ClassVar = {"description": forms.Textarea(attrs={"rows": 2})}
        field_classes: ClassVar = {"name": PersonTextField, "description": PersonTextField}

    def __init__(self, *args: Any, owners: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["embedder"].widget.attrs["list"] = "embedders"
        self.fields["embedder"].help_text = EMBEDDER_HELP
        self.initial["filterable"] = ", ".join(self.instance.filterable)
        if self.instance.pk:
            del self.fields["key"], self.fields["owner_id"]
            self.mark_values({name: self.initial[name] for name in self.fields if name in self.initial})
        else:
            self.fields["key"].required = False
            self.fields["key"].help_text = "Used in agents and in the API. Leave blank to derive it from the name."
            self.fields["owner_id"] = OwnerField(error_messages={"invalid_choice": OTHER_TEAM_MESSAGE})
            self.fields["owner_id"].set_owners(owners)  # type: ignore[attr-defined]
        del self.fields["rerank"]
        if registered_rerankers():
            keys = [(key, key) for key in registered_rerankers()]
            help_text = "A registered function that sorts results again."
            self.fields["rerank"] = forms.ChoiceField(
                choices=[("", "None"), *keys], required=False, help_text=help_text
            )

    @property
    def embedders(self) -> list[tuple[str, str]]:
        return [*local_embedders().items(), *offered_embedders()]

    def save_settings(self) -> None:
        """Store the settings of an existing base, which is locked. Its index stays what a job may have made of it."""
        names = [name for name in self.fields if name != "seen"]
        self.instance.save(update_fields=[*names, "updated_at"])
        self.instance.refresh_from_db(fields=["index"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("key") == "" and cleaned.get("name"):
            cleaned["key"] = find_unused_key(cleaned["name"])
        if self.is_outdated():
            self.ask_to_replace()
        return cleaned

    def clean_filterable(self) -> list[str]:
        return [key.strip() for key in self.cleaned_data["filterable"].split(",") if key.strip()]


def find_unused_key(name: str) -> str:
    """Return a key for a name, with the first number that makes it unused."""
    # An ID has no underscores.
    stem = slugify(name).replace("_", "-")[:MAX_STEM_LENGTH].strip("-") or "knowledge"
    return first_unused(stem, set(KnowledgeBase.objects.filter(key__startswith=stem).values_list("key", flat=True)))


class MetadataForm(forms.Form):
    """The metadata of new documents: a field for each filterable key."""

    def __init__(self, *args: Any, base: KnowledgeBase, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.base = base
        for key in base.filterable:
            self.fields[f"meta-{key}"] = PersonTextField(label=key, required=False, max_length=500)

    @property
    def problem(self) -> str:
        """The errors of the values with their keys, for uploads, which have no page with the form."""
        errors = self.errors.items()
        return " ".join(f"{self.fields[name].label}: {' '.join(map(str, texts))}" for name, texts in errors)

    @property
    def metadata(self) -> JSONObject | None:
        """The entered values: numbers as numbers. None if nothing was entered, so that documents keep theirs."""
        values = {key: self.cleaned_data.get(f"meta-{key}", "") for key in self.base.filterable}
        return {key: parse_metadata_value(text) for key, text in values.items() if text} or None


class TextForm(MetadataForm):
    """A document that is pasted."""

    name = PersonTextField(max_length=MAX_DOCUMENT_NAME_LENGTH)
    text = PersonTextField(widget=forms.Textarea(attrs={"rows": 8}), strip=False)


class UrlForm(MetadataForm):
    """A document by its URL."""

    url = forms.CharField(label="URL", max_length=2000)


class AskForm(forms.Form):
    """A search to try, with one condition per filterable key."""

    q = PersonTextField(label="Question", max_length=MAX_QUERY_LENGTH)
    top_k = forms.IntegerField(
        label="Passages", min_value=1, max_value=MAX_TOP_K, initial=DEFAULT_TOP_K, required=False
    )
    min_score = forms.FloatField(label="Minimum score", min_value=-1, max_value=1, required=False)
    key = forms.ChoiceField(label="Filter by", required=False)
    operator = forms.ChoiceField(label="Condition", choices=CONDITIONS, required=False)
    value = PersonTextField(max_length=500, required=False)

    def __init__(self, *args: Any, base: KnowledgeBase, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.base = base
        self.fields["key"] = forms.ChoiceField(
            label="Filter by", required=False, choices=[("", "Nothing"), *((key, key) for key in base.filterable)]
        )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        value = {}
        if key := values.get("key"):
            value = {key: {values.get("operator") or "$eq": parse_metadata_value(values.get("value", ""))}}
        try:
            values["condition"] = parse_filter_of_body(value, self.base.filterable)
        except BadRequest as error:
            self.add_error("value", ValidationError((error.issues or [("", error.error)])[0][1], code="filter"))
        return values


def parse_metadata_value(text: str) -> str | int | float | bool:
    """Return a typed value of metadata: a number, true or false, or the text."""
    stripped = text.strip()
    if stripped in ("true", "false"):
        return stripped == "true"
    for convert in (int, float):
        try:
            number = convert(stripped)
        except ValueError:
            continue
        # Only what stays the same as a number: not 007, 1e5 or NaN, and no integer that a double cannot have.
        if str(number) == stripped and abs(number) < 2**53:
            return number
    return text
