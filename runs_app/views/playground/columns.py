"""The columns of the playground: their configurations, availability and conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from access_app.caller import Caller
from agentcms.ids import parse_uuid, parse_whole_number
from agentcms.wire.json_types import JSONObject
from agents_app.configuration import schema
from agents_app.configuration.references import find_entry, with_distinct_messages
from agents_app.configuration.variants import CONDITIONAL
from agents_app.editing.archive_guard import AgentArchived
from agents_app.forms.existing_agent import ExistingAgentForm
from agents_app.models import Agent
from agents_app.registry import Kind
from memory_app.models import Thread
from runs_app.display.answer import RunView, build_run_views
from runs_app.display.formats import model_name
from runs_app.models import AgentRun
from runs_app.models.run_queryset import AgentRunQuerySet
from runs_app.providers.cached_providers import get_table, model_unavailable_reason
from runs_app.requests.facts import find_facts, with_variants
from runs_app.resolution import ResolvedAgent, Target, stored_agents
from runs_app.views.approval_cards import add_cards
from runs_app.views.playground.conversations import NEW, find_chosen_threads, last_run_of
from runs_app.views.playground.facts import FactTexts, chosen_variants, fact_values, submitted_facts
from versions_app.models import AgentVersion

MAX_TRY_COLUMNS = 3
MAX_TURNS = 12  # of a conversation in a column
STATUS_BY_CHOICE = {"live": "published", "draft": "draft"}
DEMO_MODEL = {"provider": "demo", "name": "echo"}
NO_UNSAVED_TEXT_MESSAGE = "This browser has no unsaved text of the agent. Change something in the editor first."


@dataclass
class PlaygroundParams:
    """The query parameters of the page: the choice and the last run of each column."""

    choices: list[str]
    runs: list[str]
    unsaved: str = ""  # the encoded form of the editor
    base: str = ""  # the version number on which the unsaved text is based
    marks: bool = False  # whether the words in which the answers differ are marked
    threads: list[str] = field(default_factory=list)  # the chosen conversation of each column: "new", or its row
    facts: FactTexts = field(default_factory=dict)  # about a caller to try with

    @classmethod
    def from_query(cls, query: QueryDict, default: Sequence[str]) -> PlaygroundParams:
        """Parse `columns=live,v7&runs=…,…` of a URL, or the fields `column` and `run` of the form."""
        values = query.getlist("column") or query.get("columns", "").split(",")
        choices = [value for value in values if is_valid_choice(value)][:MAX_TRY_COLUMNS] or [*default]
        runs = query.getlist("run") or query.get("runs", "").split(",")
        runs = [*runs, *[""] * MAX_TRY_COLUMNS][: len(choices)]
        threads = query.getlist("thread") or query.get("threads", "").split(",")
        threads = [*threads, *[""] * MAX_TRY_COLUMNS][: len(choices)]
        unsaved, base, marks = query.get("unsaved", ""), query.get("unsaved_base", ""), query.get("marks") == "yes"
        return cls(choices, runs, unsaved, base, marks, threads, submitted_facts(query))

    @property
    def query(self) -> str:
        """The query of the URL of this page."""
        runs = {"runs": ",".join(self.runs)} if any(self.runs) else {}
        marks = {"marks": "yes"} if self.marks else {}
        # A conversation whose runs were deleted is only known by its thread.
        is_needed = any(
            thread not in ("", NEW) and not run for thread, run in zip(self.threads, self.runs, strict=True)
        )
        threads = {"threads": ",".join(self.threads)} if is_needed else {}
        facts = {"facts": json.dumps(self.facts, ensure_ascii=False)} if self.facts else {}
        return urlencode({"columns": ",".join(self.choices), **runs, **threads, **marks, **facts}, safe=",")

    def add(self, choice: str) -> None:
        if choice and len(self.choices) < MAX_TRY_COLUMNS:
            self.choices.append(choice)
            self.runs.append("")
            self.threads.append("")

    def drop(self, index: int) -> None:
        if 0 <= index < len(self.choices) > 1:
            del self.choices[index], self.runs[index], self.threads[index]

    def start_anew(self) -> None:
        """Let every column start a new conversation."""
        self.runs = ["" for _ in self.runs]
        self.threads = ["" for _ in self.threads]


def is_valid_choice(text: str) -> bool:
    return text in (*STATUS_BY_CHOICE, "unsaved") or parse_version_choice(text) > 0


def parse_version_choice(choice: str) -> int:
    """Return 7 for `v7`, or 0 for a choice without a version number."""
    return parse_whole_number(choice[1:]) if choice.startswith("v") else 0


@dataclass
class PlaygroundColumn:
    """A column with one configuration of the agent."""

    choice: str
    agent: ResolvedAgent | None = None
    unavailable_reason: str = ""
    warnings: list[str] = field(default_factory=list)
    answers: list[RunView] = field(default_factory=list)
    start_error: str = ""  # why the submitted message started no run
    difference: str = ""  # how the last answer differs from that of the first column, if the words are marked
    demo_reason: str = ""  # why the demo model replaces the model of the agent
    chosen_thread: Thread | None = None  # the conversation that the user chose
    thread_link: str = ""  # the URL of the page of the conversation
    is_listed: bool = False  # whether the conversation is one of the choices

    @property
    def label(self) -> str:
        if self.choice == "unsaved":
            return "unsaved text"
        number = self.agent.version_number if self.agent else 0
        return f"{self.choice} (v{number})" if self.choice in STATUS_BY_CHOICE and number else self.choice

    @property
    def model_name(self) -> str:
        return model_name(self.agent.configuration["model"]) if self.agent else ""

    @property
    def is_demo(self) -> bool:
        return self.model_name.startswith("demo/")

    @property
    def has_memory(self) -> bool:
        """True if the next message continues the conversation."""
        memory = self.agent.configuration.get("memory") if self.agent else None
        return isinstance(memory, dict) or bool(memory and find_entry(Kind.MEMORY, memory))

    @property
    def run(self) -> AgentRun | None:
        """The last run of the column."""
        return self.answers[-1].run if self.answers else None

    @property
    def thread(self) -> Thread | None:
        """The conversation that the next message continues, or None."""
        if not self.has_memory:
            return None
        return self.run.thread if self.run else self.chosen_thread

    @property
    def thread_value(self) -> str:
        return str(self.thread.pk) if self.thread else ""

    @property
    def variants(self) -> list[tuple[str, str]]:
        """The label of each field with variants, and the one that holds."""
        return chosen_variants(self.agent) if self.agent else []


def build_columns(agent: Agent, user: Caller, params: PlaygroundParams) -> list[PlaygroundColumn]:
    """Return the columns of the page with their conversations."""
    columns = [build_column(agent, user, choice, params) for choice in params.choices]
    choose_conversations(columns, agent, user, params)
    load_columns(columns, agent, user, params)
    return columns


def choose_conversations(
    columns: Sequence[PlaygroundColumn], agent: Agent, user: Caller, params: PlaygroundParams
) -> None:
    """Set the conversation of each column that the user chose, and the run with which it ends."""
    threads = find_chosen_threads(agent, user, params.threads)
    for index, (column, choice) in enumerate(zip(columns, params.threads, strict=True)):
        column.chosen_thread = threads.get(choice) if column.has_memory else None
        if column.chosen_thread is not None:
            params.runs[index] = last_run_of(agent, column.chosen_thread, params.runs[index])
        elif choice == NEW:
            params.runs[index] = ""


def load_columns(columns: Sequence[PlaygroundColumn], agent: Agent, user: Caller, params: PlaygroundParams) -> None:
    """Load the conversations of columns. Runs that the user may not read are removed from `params`."""
    conversations = load_conversations(agent, user, params.runs)
    for column, run_id in zip(columns, params.runs, strict=True):
        column.answers = conversations.get(run_id, [])
    params.runs = [str(column.run.pk) if column.run else "" for column in columns]
    params.threads = [column.thread_value for column in columns]


def build_column(agent: Agent, user: Caller, choice: str, params: PlaygroundParams) -> PlaygroundColumn:
    """Return a column without its conversation. Raise Http404 if the agent was deleted meanwhile."""
    try:
        resolved = resolve_choice(agent, user, choice, params)
    except AgentArchived as error:
        return PlaygroundColumn(choice, unavailable_reason=str(error))
    except Agent.DoesNotExist:
        raise Http404 from None
    except AgentVersion.DoesNotExist:
        return PlaygroundColumn(choice, unavailable_reason=f"{choice} does not exist or was deleted.")
    except schema.ConfigError as error:
        return PlaygroundColumn(choice, unavailable_reason=" ".join(issue.message for issue in error.issues))
    resolved = with_variants(resolved, {**find_facts(user, resolved), **fact_values(params.facts)}, {})
    missing = with_distinct_messages(resolved.missing_references())
    warnings = [reference.message for reference in missing if reference.field != "model"]
    reason = model_unavailable_reason(resolved.configuration["model"]["provider"])
    if reason and (demo := with_demo_model(resolved)):
        return PlaygroundColumn(choice, demo, warnings=warnings, demo_reason=reason)
    return PlaygroundColumn(choice, resolved, reason, warnings)


def with_demo_model(resolved: ResolvedAgent) -> ResolvedAgent | None:
    """Return the agent with the demo model, or None if its own provider is unknown or the demo is disabled."""
    is_known = get_table().find(resolved.configuration["model"]["provider"]) is not None
    if not is_known or model_unavailable_reason(DEMO_MODEL["provider"]):
        return None
    # Live and draft agents are cached by version, so this one needs another target.
    target = Target.VERSION if resolved.version_id else resolved.target
    configuration = {**resolved.configuration, "model": DEMO_MODEL}
    # Or a variant would take the place of the demo model.
    if variants := configuration.get(CONDITIONAL):
        configuration[CONDITIONAL] = {field: rows for field, rows in variants.items() if field != "model"}
    return replace(resolved, configuration=configuration, target=target)


def resolve_choice(agent: Agent, user: Caller, choice: str, params: PlaygroundParams) -> ResolvedAgent:
    """Return the agent of a column. Raise ConfigError for invalid unsaved text."""
    if choice == "unsaved":
        return ResolvedAgent.unsaved(agent, unsaved_configuration(agent, user, params))
    if choice in STATUS_BY_CHOICE:
        return stored_agents.get(agent.pk, user=user, status=STATUS_BY_CHOICE[choice])
    return stored_agents.get(agent.pk, user=user, version_number=parse_version_choice(choice))


def unsaved_configuration(agent: Agent, user: Caller, params: PlaygroundParams) -> JSONObject:
    """Return the configuration that saving the unsaved text would create."""
    if not params.unsaved:
        raise config_error(NO_UNSAVED_TEXT_MESSAGE)
    values = QueryDict(params.unsaved, mutable=True)
    base = agent.versions.filter(version_number=parse_whole_number(params.base)).first()
    values["head"] = str(base.pk) if base else ""
    form = ExistingAgentForm.from_request(values, agent, user)
    if not form.is_valid():
        errors = "; ".join(f"{field.label}: {field.errors[0]}" for field in form.fields_with_errors)
        raise config_error(f"The unsaved text cannot run. {errors or 'Open the editor to see why.'}")
    head = stored_agents.get(agent.pk, user=user, status="draft")
    return {**head.configuration, **schema.to_wire_dict(form.changed_fields())}


def config_error(message: str) -> schema.ConfigError:
    return schema.ConfigError([schema.Issue("", message)])


def load_conversations(agent: Agent, user: Caller, run_ids: Iterable[str]) -> dict[str, list[RunView]]:
    """Return the last turns of the conversations that end with these runs, by run id."""
    valid_ids = [run_id for run_id in run_ids if parse_uuid(run_id)]
    runs = AgentRun.objects.for_user(user).with_roles(user).defer("conversation")
    readable = runs.filter(agent=agent, parent=None).select_related("thread")
    last_runs = readable.filter(pk__in=valid_ids).only("pk", "thread_id", "created_at")
    turns = {str(run.pk): load_turns(readable, run) for run in last_runs}
    views = {view.run.pk: view for view in build_run_views({run for runs in turns.values() for run in runs}, user)}
    add_cards(views.values(), user)
    return {run_id: [views[run.pk] for run in runs] for run_id, runs in turns.items()}


def load_turns(readable: AgentRunQuerySet, run: AgentRun) -> list[AgentRun]:
    """Return the runs of a conversation up to `run`, oldest first."""
    if run.thread_id is None:
        return [*readable.filter(pk=run.pk)]
    runs = readable.filter(thread=run.thread_id, created_at__lte=run.created_at)
    return [*runs.order_by("-created_at", "-pk")[:MAX_TURNS]][::-1]
