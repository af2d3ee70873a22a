"""Experiments: a version of an agent over the items of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Case, OuterRef, Q, Subquery, When
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, NullIf
from django.utils import timezone

from access_app.caller import Caller
from agentcms.db.text_conditions import any_contains_text
from agentcms.ids import uuid7
from agentcms.wire.json_types import JSONObject, JSONValue
from agents_app.models import Agent
from evals_app.models.dataset import Dataset
from evals_app.models.item import DatasetItem, ItemVersion
from evals_app.models.text_lists import list_has
from runs_app.models import AgentRun


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    def for_user(self, user: Caller) -> Self:
        """Filter to the experiments over the datasets that the user may see."""
        return self.filter(dataset__in=Dataset.objects.for_user(user))

    def unfinished(self) -> Self:
        return self.filter(status__in=Experiment.UNFINISHED)

    def with_target_names(self, user: Caller) -> Self:
        """Add the name of each agent that the user may see. Titles have it instead of the ID."""
        agents = Agent.objects.for_user(user).filter(pk=OuterRef("target_id")).order_by()
        # Only for agents: a workflow or a scorer may have the ID of an agent.
        name = When(target_type=Experiment.Target.AGENT, then=Subquery(agents.values("name")[:1]))
        return self.annotate(target_name=Case(name))

    def by_mean_of(self, scorer_key: str) -> Self:
        """Sort by the mean of a scorer, the highest first, and those without one last."""
        figures = KeyTransform(scorer_key, KeyTransform("scorers", "summary"))
        # SQLite has the null of JSON as a text.
        mean = Cast(NullIf(KeyTextTransform("mean", figures), models.Value("null")), models.FloatField())
        return self.order_by(mean.desc(nulls_last=True), "-created_at", "-id")

    def with_text(self, text: str) -> Self:
        """Filter to the experiments whose name, target or dataset contains a text, after `with_target_names`."""
        columns = ("name", "target_name", "target_id", "dataset__name")
        return self.filter(any_contains_text(columns, text))


class Experiment(models.Model):
    """The answers of a target to the items of a dataset at one version, with their scores."""

    class Status(models.TextChoices):
        PENDING = "pending", "Pending"
        RUNNING = "running", "Running"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    class Target(models.TextChoices):
        AGENT = "agent", "Agent"
        WORKFLOW = "workflow", "Workflow"
        SCORER = "scorer", "Scorer"

    class Verdict(models.TextChoices):
        FAILED = "failed", "Failed"
        SCORED = "scored", "Bar missed"
        PASSED = "passed", "Passed"

    UNFINISHED: ClassVar = (Status.PENDING, Status.RUNNING)
    target_name: str | None = None  # only after `with_target_names`

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="experiments", editable=False)
    dataset_version = models.PositiveIntegerField(editable=False)
    name = models.CharField(max_length=200, blank=True, default="")
    description = models.TextField(blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)

    # No foreign keys: an experiment stays when its agent is deleted, and workflows have no rows.
    target_type = models.CharField(max_length=16, blank=True, default="", editable=False)
    target_id = models.CharField("target ID", max_length=256, blank=True, default="", editable=False)
    target_owner_id = models.CharField(max_length=128, blank=True, default="", editable=False)
    target_state = models.CharField(
        "version asked for", max_length=16, blank=True, default="", editable=False, help_text="live, draft, version"
    )
    version_id = models.UUIDField(null=True, editable=False)
    version_number = models.PositiveIntegerField(null=True, editable=False)
    # Release gates find an experiment by it, so that it counts for every version with the same configuration.
    snapshot_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    # From the start of the experiment: a gate warns if sub-agents have changed since.
    sub_agent_versions = models.JSONField(default=dict, editable=False)
    scorer_keys = models.JSONField(null=True, editable=False, help_text="Null: those of each item or the dataset.")
    # From the start, too: all answers are scored by the same scorers and versions.
    dataset_scorer_keys = models.JSONField(
        null=True, editable=False, help_text="Those of the dataset when the experiment was created."
    )
    scorer_versions = models.JSONField(default=dict, editable=False)
    concurrency = models.PositiveSmallIntegerField(default=4, editable=False)
    repeats = models.PositiveSmallIntegerField(default=1, editable=False)
    seed = models.PositiveIntegerField(
        null=True, editable=False, help_text="Sent to the model, plus the number of the attempt."
    )
    request_context = models.JSONField(default=dict, editable=False)
    memory = models.JSONField(default=dict, editable=False, help_text="thread and resource")
    budget = models.JSONField(default=dict, editable=False)
    gate_scorers = models.JSONField(
        null=True, editable=False, help_text="Scorers that must give every answer a 1, or a 0 if low scores are good."
    )
    bars = models.JSONField(default=dict, editable=False, help_text="The mean that each scorer must reach.")

    is_external = models.BooleanField(
        default=False, editable=False, help_text="A program outside runs the items or submits the results."
    )
    has_submitted_results = models.BooleanField(default=False, editable=False)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING, editable=False)
    verdict = models.CharField(max_length=8, choices=Verdict, blank=True, default="", editable=False)
    error = models.TextField(blank=True, default="", editable=False)
    stop_reason = models.TextField(blank=True, default="", editable=False)
    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    total_items = models.PositiveIntegerField(default=0, editable=False)
    succeeded_count = models.PositiveIntegerField(default=0, editable=False)
    failed_count = models.PositiveIntegerField(default=0, editable=False)
    summary = models.JSONField(default=dict, editable=False, help_text="Figures of each scorer, cost and durations.")
    # `db_default`, here and below: the previous release inserts rows without the column during an upgrade.
    earlier_cost = models.DecimalField(
        "cost of attempts without a result",
        max_digits=14,
        decimal_places=8,
        default=0,
        db_default=0,
        editable=False,
        help_text="In dollars, of attempts that were lost, retried or stopped.",
    )
    earlier_tokens = models.PositiveBigIntegerField(
        "tokens of attempts without a result", default=0, db_default=0, editable=False
    )

    provenance = models.JSONField(null=True, editable=False)
    experiment_set_id = models.CharField(max_length=200, null=True, editable=False)
    comparison_id = models.CharField(max_length=200, null=True, editable=False)
    variant_id = models.CharField(max_length=200, null=True, editable=False)
    trial_index = models.PositiveIntegerField(null=True, editable=False)

    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, related_name="+"
    )
    # As for API keys. The worker has no key that says it.
    realm_owner = models.CharField(
        "for end users of",
        max_length=128,
        null=True,
        editable=False,
        help_text="The team in whose conversations the items run. Null: in those of the user.",
    )
    created_by_name = models.CharField("created by", max_length=150, blank=True, default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    completed_at = models.DateTimeField(null=True, editable=False)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["dataset", "-created_at"], name="experiment_of_dataset"),
            models.Index(fields=["target_type", "target_id", "-created_at"], name="experiment_of_target"),
            models.Index(fields=["snapshot_hash", "dataset"], name="experiment_of_snapshot"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """The name, or else the target with its version. Submitted results are marked as such."""
        target = self.target_name or self.target_id or "Results"
        name = self.name or f"{target} {self.version_label}".strip()
        return f"{name} (submitted)" if self.has_submitted_results else name

    @property
    def version_label(self) -> str:
        return f"v{self.version_number}" if self.version_number else ""

    @property
    def is_finished(self) -> bool:
        return self.status not in self.UNFINISHED

    @property
    def end_reason(self) -> str:
        """The error or the budget that ended the experiment. Blank if it was cancelled, which its status says."""
        is_cancelled = self.status == self.Status.CANCELLED and self.cancel_requested_at is not None
        return "" if is_cancelled else self.stop_reason or self.error

    @property
    def done_count(self) -> int:
        return self.succeeded_count + self.failed_count

    @property
    def has_further_attempts(self) -> bool:
        """True if a program outside has submitted more results than the items, with their repeats, are."""
        return self.done_count > self.total_items

    @property
    def scorer_figures(self) -> list[JSONObject]:
        """The figures of each scorer. In a template, `scorers.items` could be those of a scorer with this ID."""
        return [*self.summary.get("scorers", {}).values()]

    @property
    def scored_figures(self) -> list[JSONObject]:
        """The figures of the scorers that have a mean."""
        return [figures for figures in self.scorer_figures if figures["mean"] is not None]

    @property
    def duration(self) -> timedelta | None:
        return (self.completed_at or timezone.now()) - self.started_at if self.started_at else None


class ExperimentResultQuerySet(models.QuerySet["ExperimentResult"]):
    """Results of experiments."""

    def with_tags(self, tags: Iterable[str]) -> Self:
        """Return the results that have all these tags."""
        return self.filter(*(list_has("tags", tag) for tag in tags))


class ExperimentResult(models.Model):
    """The answer of the target to one item, in one attempt, with its scores."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"

    class Review(models.TextChoices):
        NEEDS_REVIEW = "needs-review", "Needs review"
        REVIEWED = "reviewed", "Reviewed"
        COMPLETE = "complete", "Complete"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="results", editable=False)
    item = models.ForeignKey(DatasetItem, models.CASCADE, related_name="results", editable=False)
    item_version = models.ForeignKey(ItemVersion, models.CASCADE, related_name="+", editable=False)
    attempt = models.PositiveSmallIntegerField(default=0, editable=False)
    state = models.CharField(max_length=8, choices=State, default=State.RUNNING, editable=False)
    run = models.ForeignKey(AgentRun, models.SET_NULL, null=True, related_name="+", editable=False)
    run_key = models.UUIDField(null=True, editable=False, help_text="The ID of the run, which may be deleted.")
    # By it, the data of a person is found after the run, which is deleted earlier.
    resource_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The hash of the run's resource.",
    )
    trace_id = models.CharField(
        max_length=200, blank=True, default="", db_default="", editable=False, help_text="Of a submitted result."
    )
    input = models.JSONField(null=True, editable=False, help_text="Null: that of the item.")
    ground_truth = models.JSONField(null=True, editable=False, help_text="Null: that of the item.")
    output = models.JSONField(null=True, editable=False)
    error = models.JSONField(null=True, editable=False)
    duration_ms = models.PositiveIntegerField(null=True, editable=False)
    tokens = models.PositiveIntegerField(null=True, editable=False, help_text="Of the run and its sub-agents.")
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, editable=False)
    scores = models.JSONField(default=list, editable=False)
    scores_tokens = models.PositiveIntegerField(null=True, editable=False, help_text="Those of judges.")
    scores_cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, editable=False)
    tool_mock_report = models.JSONField(null=True, editable=False)
    # Each new start of the item changes it. Only a process that knows the number stores the result.
    retry_count = models.PositiveSmallIntegerField(default=0, editable=False)
    is_submitted = models.BooleanField(default=False, editable=False)
    review = models.CharField(max_length=16, choices=Review, blank=True, default="")
    tags = models.JSONField(default=list, blank=True)
    comment = models.TextField(blank=True, default="")
    started_at = models.DateTimeField(default=timezone.now, editable=False)
    completed_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ExperimentResultQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            # Two workers may reach the same item. The one that inserts the row starts it.
            models.UniqueConstraint(fields=["experiment", "item", "attempt"], name="one_result_per_attempt")
        ]
        indexes: ClassVar = [
            models.Index(fields=["experiment", "state"], name="result_state"),
            models.Index(fields=["run_key"], name="result_of_run", condition=Q(run_key__isnull=False)),
            models.Index(fields=["resource_digest"], name="result_of_resource"),
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.item_id}"

    def score_of(self, scorer: str) -> float | None:
        """Return the score of a scorer, or None without one."""
        return next((entry["score"] for entry in self.scores if entry["scorerId"] == scorer), None)

    @property
    def effective_input(self) -> JSONValue:
        return self.input if self.input is not None else self.item_version.input

    @property
    def effective_ground_truth(self) -> JSONValue:
        return self.ground_truth if self.ground_truth is not None else self.item_version.ground_truth
