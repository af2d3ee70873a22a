"""The columns of Try it: what runs in each, why it cannot, and what was said there so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from agentcms.web.list_state import parse_number
from agents_app.configuration import schema
from agents_app.configuration.references import find_entry
from agents_app.forms.edit import ExistingAgentForm
from agents_app.models import Agent
from agents_app.registry import Kind
from runs_app.display.answer import RunView, build_run_views
from runs_app.display.formats import model_name
from runs_app.models import AgentRun
from runs_app.providers.table import get_table
from runs_app.resolution import ResolvedAgent, Target, stored_agents
from versions_app.models import AgentVersion

MAX_COLUMNS = 3
MAX_TURNS = 12  # of a conversation that a column shows
STATUS_BY_CHOICE = {"live": "published", "draft": "draft"}
DEMO_MODEL = {"provider": "demo", "name": "echo"}
NO_UNSAVED_TEXT_MESSAGE = "This browser keeps no unsaved text of the agent. Change something in the editor first."


@dataclass
class TryPageParams:
    """What an address or a form asks of the page: what runs in each column, and what ran there last."""

    choices: list[str]
    runs: list[str]
    unsaved: str = ""  # the editor's form as a browser sends it
    base: str = ""  # the version number on which that was begun

    @classmethod
    def of(cls, query: QueryDict, default: Sequence[str] = ("live",)) -> TryPageParams:
        """From `columns=live,v7&runs=…,…` of an address, or the fields `column` and `run` of the form."""
        choices = query.getlist("column") or [each for each in query.get("columns", "").split(",") if each]
        choices = [each for each in choices if is_valid_choice(each)][:MAX_COLUMNS] or [*default]
        runs = query.getlist("run") or query.get("runs", "").split(",")
        runs = [*runs, *[""] * MAX_COLUMNS][: len(choices)]
        return cls(choices, runs, query.get("unsaved", ""), query.get("unsaved_base", ""))

    @property
    def query(self) -> str:
        """The address of the same page."""
        runs = {"runs": ",".join(self.runs)} if any(self.runs) else {}
        return urlencode({"columns": ",".join(self.choices), **runs}, safe=",")

    def add(self, choice: str) -> None:
        if len(self.choices) < MAX_COLUMNS:
            self.choices.append(choice)
            self.runs.append("")

    def drop(self, place: int) -> None:
        if 0 <= place < len(self.choices) > 1:
            del self.choices[place], self.runs[place]


def is_valid_choice(text: str) -> bool:
    return text in (*STATUS_BY_CHOICE, "unsaved") or parse_version_choice(text) > 0


def parse_version_choice(choice: str) -> int:
    """The number of `v7`, or 0 for what names no version."""
    return parse_number(choice[1:]) if choice.startswith("v") else 0


@dataclass
class TryColumn:
    """One place where an agent runs as one of its configurations."""

    choice: str
    stored: ResolvedAgent | None = None
    why_not: str = ""
    warnings: list[str] = field(default_factory=list)
    answers: list[RunView] = field(default_factory=list)
    fault: str = ""  # why what was just asked did not run
    stand_in: str = ""  # why the demo model answers here in place of another

    @property
    def label(self) -> str:
        """What runs here, as people say it."""
        if self.choice == "unsaved":
            return "unsaved text"
        number = self.stored.version_number if self.stored else 0
        return f"{self.choice} (v{number})" if self.choice in STATUS_BY_CHOICE and number else self.choice

    @property
    def model_name(self) -> str:
        return model_name(self.stored.configuration["model"]) if self.stored else ""

    @property
    def is_demo(self) -> bool:
        return self.model_name.startswith("demo/")

    @property
    def remembers(self) -> bool:
        """Whether a follow-up goes on with the conversation."""
        memory = self.stored.configuration.get("memory") if self.stored else None
        return bool(memory and find_entry(Kind.MEMORY, memory))

    @property
    def run(self) -> AgentRun | None:
        """What ran here last."""
        return self.answers[-1].run if self.answers else None

    @property
    def thread(self) -> str:
        """The conversation that a follow-up goes on with, or nothing."""
        last = self.run
        return last.thread.key if self.remembers and last and last.thread else ""


def build_columns(agent: Agent, user: Any, asked: TryPageParams) -> list[TryColumn]:
    """The columns that were asked for, each with what was said there so far."""
    found = [build_column(agent, user, choice, asked) for choice in asked.choices]
    load_answers(found, agent, user, asked)
    return found


def load_answers(found: Sequence[TryColumn], agent: Agent, user: Any, asked: TryPageParams) -> None:
    """Put what was said into each column; a run that the caller may not read was never asked for."""
    said = load_conversations(agent, user, asked.runs)
    for each, run in zip(found, asked.runs, strict=True):
        each.answers = said.get(run, [])
    asked.runs = [str(each.run.pk) if each.run else "" for each in found]


def build_column(agent: Agent, user: Any, choice: str, asked: TryPageParams) -> TryColumn:
    try:
        stored = resolve_choice(agent, user, choice, asked)
    except AgentVersion.DoesNotExist:
        return TryColumn(choice, why_not=f"There is no {choice} of this agent, or it is not kept any more.")
    except schema.ConfigError as error:
        return TryColumn(choice, why_not=" ".join(issue.message for issue in error.issues))
    warned = [each.message for each in stored.missing_references() if each.field != "model"]
    why_not = model_unavailable_reason(stored.configuration["model"]["provider"])
    if why_not and (other := with_demo_model(stored)):
        return TryColumn(choice, other, warnings=warned, stand_in=why_not)
    return TryColumn(choice, stored, why_not, warned)


def with_demo_model(stored: ResolvedAgent) -> ResolvedAgent | None:
    """The agent with the built-in model, so that it can be tried without a key; nothing where nobody knows its own."""
    providers = get_table()
    if providers.find(stored.configuration["model"]["provider"]) is None or model_unavailable_reason(
        DEMO_MODEL["provider"]
    ):
        return None
    # What is live or a draft is kept when it was built, under its version; this must never be taken for it.
    target = Target.VERSION if stored.version_id else stored.target
    return replace(stored, configuration={**stored.configuration, "model": DEMO_MODEL}, target=target)


def resolve_choice(agent: Agent, user: Any, choice: str, asked: TryPageParams) -> ResolvedAgent:
    """The agent as a column has it. Raises ShapeError for unsaved text that cannot be read."""
    if choice == "unsaved":
        return ResolvedAgent.unsaved(agent, unsaved_configuration(agent, user, asked))
    if choice in STATUS_BY_CHOICE:
        return stored_agents.get(agent.pk, user=user, status=STATUS_BY_CHOICE[choice])
    return stored_agents.get(agent.pk, user=user, version_number=parse_version_choice(choice))


def unsaved_configuration(agent: Agent, user: Any, asked: TryPageParams) -> dict[str, Any]:
    """The configuration that saving the editor's text would make."""
    if not asked.unsaved:
        raise config_error(NO_UNSAVED_TEXT_MESSAGE)
    sent = QueryDict(asked.unsaved, mutable=True)
    begun = agent.versions.filter(version_number=parse_number(asked.base)).first()
    sent["head"] = str(begun.pk) if begun else ""
    form = ExistingAgentForm.from_request(sent, agent, user)
    if not form.is_valid():
        named = "; ".join(f"{field.label}: {field.errors[0]}" for field in form.fields_with_errors)
        raise config_error(f"The unsaved text cannot run. {named or 'Open the editor to see why.'}")
    head: Any = stored_agents.get(agent.pk, user=user, status="draft")
    return {**head.configuration, **schema.to_wire_dict(form.changed_fields())}


def model_unavailable_reason(name: str) -> str:
    """Why a provider cannot be asked: what is missing, and where it is set. Empty where it can."""
    provider = get_table().find(name)
    if provider is None:
        return f"Unknown model provider '{name}'. Choose one in the editor."
    return provider.reason


def config_error(sentence: str) -> schema.ConfigError:
    return schema.ConfigError([schema.Issue("", sentence)])


def load_conversations(agent: Agent, user: Any, run_ids: Iterable[str]) -> dict[str, list[RunView]]:
    """What was said in each column up to its last run: that run, or the end of its conversation."""
    wanted = [run_id for run_id in run_ids if is_uuid(run_id)]
    readable = AgentRun.objects.for_user(user).filter(agent=agent, parent=None).select_related("thread")
    last = {str(run.pk): run for run in readable.filter(pk__in=wanted).only("pk", "thread_id", "created_at")}
    turns = {run_id: load_turns(readable, run) for run_id, run in last.items()}
    shown = {answer.run.pk: answer for answer in build_run_views({run for runs in turns.values() for run in runs})}
    return {run_id: [shown[run.pk] for run in runs] for run_id, runs in turns.items()}


def load_turns(readable: Any, run: AgentRun) -> list[AgentRun]:
    if run.thread_id is None:
        return [*readable.filter(pk=run.pk)]
    of_thread = readable.filter(thread=run.thread_id, created_at__lte=run.created_at)
    return [*of_thread.order_by("-created_at", "-pk")[:MAX_TURNS]][::-1]


def is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
