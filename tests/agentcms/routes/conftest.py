"""A team with one row of everything that a route of tools, knowledge, evaluations or conversations can show."""

import uuid
from types import SimpleNamespace

import pytest

from evals_app.models import DatasetItem, Experiment, ExperimentResult, ReleaseGate
from evals_app.scorers import changes
from jobs_app.models import Job
from knowledge_app.indexing.rebuild import create_live_index
from knowledge_app.models import Document, KnowledgeBase
from memory_app.models import Participant
from runs_app.models import BackgroundTask, Score
from runs_app.models.saved_input import SavedInput
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, api_key, member
from tests.memory_app.conftest import add_thread
from tests.runs_app.factories import PendingCallFactory, RunFactory
from tools_app.mcp.definitions import Definition, Listing
from tools_app.mcp.listing import store_listing
from tools_app.models import AcpAgent, McpServer
from tools_app.models.acp_permission import AcpPermission

TEAM = "support"
SECRET = "turquoise"  # in every text and every name of the team
CHECK = {"type": "check", "name": SECRET, "presetConfig": {"check": "includes", "value": "yes"}}


@pytest.fixture
def team(db, settings):
    """Return the manager of a team, an API key, and the parameters of the routes that lead to the team's rows."""
    settings.ACP_COMMANDS = {"coder": {"argv": ["/usr/bin/true"], "sandbox": "none"}}
    user = member("manager", TEAM, username=SECRET)
    agent = AgentFactory(id=f"{SECRET}-agent", name=SECRET, owner_id=TEAM, instructions=SECRET)
    values = {
        "agent_id": agent.pk,
        **tools(),
        **knowledge(),
        **conversations(user, agent),
    }
    values["input_id"] = SavedInput.objects.create(user=user, agent=agent, name=SECRET, text=SECRET).pk
    values |= evaluations(user, agent, values["run_id"])
    return SimpleNamespace(user=user, key=api_key(user), values=values, secret=SECRET)


def tools():
    server = McpServer.objects.create(
        key=f"{SECRET}-server", title=SECRET, url="https://mcp.example.org/mcp", owner_id=TEAM
    )
    definition = Definition(f"{SECRET}_tool", SECRET, {"type": "object"})
    store_listing(server.pk, Listing({definition.name: definition}, []))
    coder = AcpAgent.objects.create(key=f"{SECRET}-coder", title=SECRET, command_key="coder")
    return {"server_id": server.key, "tool_id": definition.name, "acp_id": coder.key}


def knowledge():
    base = KnowledgeBase.objects.create(key=f"{SECRET}-base", name=SECRET, owner_id=TEAM, filterable=["year"])
    index = create_live_index(base)
    document = Document.objects.create(base=base, name=SECRET, source="text", media_type="text/plain", text=SECRET)
    return {"base_id": base.key, "vector_id": base.key, "index_id": index.name, "document_id": document.pk}


def conversations(user, agent):
    run = RunFactory(agent=agent, requested_by=user, prompt=SECRET, output=SECRET)
    call = PendingCallFactory(run=RunFactory(agent=agent, requested_by=user, suspended=True, chunks=[]))
    thread = add_thread(
        user, f"{SECRET}-thread", f"{SECRET}-person", [("user", SECRET)], agent=agent, agent_key=agent.pk
    )
    thread.title = SECRET
    thread.save()
    Participant.objects.create(thread=thread, user=user, name=SECRET)
    task = BackgroundTask.objects.create(
        run=run, tool=SECRET, timeout_ms=1000, agent_key=agent.pk, owner_id=TEAM, call_key="c1", call_id="c1"
    )
    coder = AcpAgent.objects.get()
    permission = AcpPermission.objects.create(
        agent=coder, thread=thread, owner_id=TEAM, mark="m", title=SECRET, option_kind="allow_always"
    )
    return {
        "run_id": run.pk,
        "call_id": call.pk,
        "approval_id": call.pk,
        "thread_id": thread.key,
        "key": thread.key,
        "task_id": task.pk,
        "user_id": user.pk,
        "permission_id": permission.pk,
        "revision": 0,
        "resource_id": f"{SECRET}-person",
    }


def evaluations(user, agent, run_id):
    dataset = make_dataset({"input": SECRET}, pk=f"{SECRET}-dataset", owner_id=TEAM, description=SECRET)
    item = DatasetItem.objects.get()
    version = agent.active_version
    experiment = Experiment.objects.create(
        dataset=dataset,
        dataset_version=1,
        name=SECRET,
        target_type="agent",
        target_id=agent.pk,
        status="completed",
        total_items=1,
        succeeded_count=1,
        created_by=user,
        summary={"scorers": {"exact": {"mean": 1, "min": 1, "passRate": 1}}},
    )
    result = ExperimentResult.objects.create(
        experiment=experiment, item=item, item_version=item.versions.get(), state="done", output=SECRET, run_id=run_id
    )
    gate = ReleaseGate.objects.create(agent=agent, dataset=dataset, scorer="exact", minimum=0.5)
    scorer = changes.create_scorer(CHECK, id=f"{SECRET}-scorer", owner_id=TEAM, author="ann")
    Score.objects.create(run_id=run_id, scorer=scorer.pk, score=0.5, reason=SECRET)
    job = Job.objects.create(kind="import-items", requested_by=user, parameters={"dataset": dataset.pk})
    return {
        "dataset_id": dataset.pk,
        "item_id": item.pk,
        "experiment_id": experiment.pk,
        "result_id": result.pk,
        "gate_id": gate.pk,
        "scorer_id": scorer.pk,
        "version_id": scorer.live_id,
        "number": 1,
        "trace_id": run_id,
        "span_id": run_id,
        "entity_type": "agent",
        "entity_id": agent.pk,
        "job_id": job.pk,
        "version": version.pk,
    }


def missing(values):
    """Return parameters of the same forms, of which no row exists."""
    absent = {}
    for name, value in values.items():
        is_uuid = isinstance(value, uuid.UUID)
        absent[name] = uuid.uuid4() if is_uuid else value + 10_000 if isinstance(value, int) else "absent"
    return {**absent, "number": 1, "revision": 0, "entity_type": "agent"}


def values_of(route, values):
    """Return the parameters of one route. `key` is that of a knowledge base or of a thread."""
    return {**values, "key": values["base_id"]} if route.module.startswith("knowledge_app") else values
