"""Knowledge bases: collections of documents that agents search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, transaction
from django.utils import timezone

from access_app.owned_rows import OwnedQuerySet
from agentcms.errors import NotFound
from agentcms.vectors import UnknownEmbedder, find_embedder
from agentcms.wire.json_types import JSONObject
from agentcms.wire.metadata_filter import key_error
from knowledge_app.search.rerank import registered_rerankers

if TYPE_CHECKING:
    from knowledge_app.models.knowledge_index import KnowledgeIndex

DEFAULT_CHUNK_SIZE, DEFAULT_CHUNK_OVERLAP = 1000, 100  # characters
MIN_CHUNK_SIZE, MAX_CHUNK_SIZE = 100, 8000
MAX_FILTERABLE_KEYS = 20
DEFAULT_EMBEDDER = "local/multilingual"


class KnowledgeBaseQuerySet(OwnedQuerySet["KnowledgeBase"]):
    """The knowledge bases of teams, and the shared ones."""

    def lock(self) -> None:
        """Lock the bases. Whoever changes what they have does so first, or two could wait for each other."""
        list(self.order_by("pk").select_for_update(of=("self",)).values_list("pk"))

    def get_locked(self, base_id: int) -> KnowledgeBase:
        """Return a base as it is now, locked until the transaction ends. Raise NotFound if it was deleted."""
        base = self.select_for_update(of=("self",)).filter(pk=base_id).first()
        if base is None:
            raise NotFound("The knowledge base was deleted meanwhile.")
        return base


class KnowledgeBase(models.Model):
    """A collection of documents, with how they are split and embedded.

    `index` has the chunks that searches read. Another index may be built beside it, for another embedder or other
    chunk sizes; it replaces this one when it is complete.
    """

    key = models.CharField(
        "ID",
        max_length=40,
        unique=True,
        # `$` would accept a line break at the end.
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*\Z", "Use lowercase letters, digits and '-'.")],
        help_text="Used in agents and in the API; cannot be changed.",
    )
    name = models.CharField(max_length=100)
    description = models.TextField(
        blank=True, default="", max_length=2000, help_text="Tells models when to search this knowledge base."
    )
    # No foreign key: a team has no row, it exists by its memberships.
    owner_id = models.CharField(
        "team", max_length=128, blank=True, default="", help_text="Blank: shared with every team."
    )
    embedder = models.CharField(max_length=128, default=DEFAULT_EMBEDDER)
    chunk_size = models.PositiveIntegerField(
        default=DEFAULT_CHUNK_SIZE,
        validators=[MinValueValidator(MIN_CHUNK_SIZE), MaxValueValidator(MAX_CHUNK_SIZE)],
        help_text="The most characters of a chunk.",
    )
    chunk_overlap = models.PositiveIntegerField(
        default=DEFAULT_CHUNK_OVERLAP, help_text="Characters that a chunk may share with the one before it."
    )
    filterable = models.JSONField(
        "filterable keys",
        default=list,
        blank=True,
        help_text="Keys of the metadata of documents by which searches may be filtered.",
    )
    rerank = models.CharField(
        max_length=128, blank=True, default="", help_text="The key of a registered function that sorts results again."
    )
    # Null only until `create_live_index`: the index needs the primary key of the base.
    index = models.ForeignKey(
        "KnowledgeIndex", models.SET_NULL, null=True, blank=True, editable=False, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = KnowledgeBaseQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["name", "key"]
        indexes: ClassVar = [models.Index(fields=["owner_id"], name="knowledge_base_owner")]

    def __str__(self) -> str:
        return self.name or self.key

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.updated_at = timezone.now()
        super().save(*args, **kwargs)

    @transaction.atomic
    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        KnowledgeBase.objects.filter(pk=self.pk).lock()
        return super().delete(*args, **kwargs)

    def clean(self) -> None:
        """Raise ValidationError by field."""
        super().clean()
        errors: dict[str, object] = {}
        if self.chunk_size is not None and self.chunk_overlap is not None and self.chunk_overlap * 2 > self.chunk_size:
            errors["chunk_overlap"] = f"The overlap may be at most half of the chunk size: {self.chunk_size // 2}."
        if message := keys_error(self.filterable):
            errors["filterable"] = message
        if self.rerank and self.rerank not in registered_rerankers():
            known = ", ".join(registered_rerankers()) or "none"
            errors["rerank"] = f"No reranker is registered as '{self.rerank}'. Registered are: {known}."
        try:
            find_embedder(self.embedder)
        except UnknownEmbedder as error:
            errors["embedder"] = str(error)
        if errors:
            raise ValidationError(errors)

    @property
    def live_index(self) -> KnowledgeIndex:
        """The index that searches read. Each base has one from its creation on."""
        if self.index is None:
            raise ValueError(f"The knowledge base {self.key} has no index.")
        return self.index

    @property
    def is_outdated(self) -> bool:
        """True if the settings changed since the live index was built. A job builds another one."""
        return self.live_index.settings != self.settings_of_index

    @property
    def settings_of_index(self) -> JSONObject:
        """The settings that decide about the chunks. An index with other values is outdated."""
        return {"embedder": self.embedder, "chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}


def keys_error(keys: object) -> str:
    """Return what is wrong with the filterable keys, or a blank text."""
    if not isinstance(keys, list):
        return 'This must be a list of keys, such as ["product", "year"].'
    if len(keys) > MAX_FILTERABLE_KEYS:
        return f"A knowledge base has at most {MAX_FILTERABLE_KEYS} filterable keys."
    if message := next(filter(None, map(key_error, keys)), ""):
        return message
    return "Name each key once." if len({*keys}) < len(keys) else ""
