"""Agents of other owners, which no route may tell apart from missing ones."""

import gc
import json
import re
import statistics
import time
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access_app.models import ApiKey, Membership
from agents_app.models import Agent
from evals_app.datasets.changes import add_items
from evals_app.models import Dataset, Experiment, ExperimentResult, ItemVersion, ReleaseGate, Scorer
from jobs_app.models import Job
from jobs_app.runner import enqueue
from knowledge_app.documents.adding import add_text
from knowledge_app.models import Document, KnowledgeBase
from memory_app.models import Participant, Thread
from runs_app.models import AgentRun, PendingCall, SavedInput
from tests.access_app.api.test_permissions import AGENT_CASES, NEW
from tests.api_client import AGENTS, Caller, agent_path
from tests.factories import AgentFactory, api_key, member
from tests.knowledge_app.conftest import make_base
from tests.memory_app.conftest import add_thread
from tests.routes import all_routes
from tests.runs_app.factories import PendingCallFactory
from tools_app.models import AcpAgent, McpServer
from versions_app.models import Activation, AgentVersion, DeletedAgent

YOURS, THEIRS, NOBODYS = "it-is-yours", "it-is-theirs", "it-is-nobody"  # the last two of one length
WARM_UP, ROUNDS = 20, 300


def by_case(case):
    return f"{case.method} {case.path} {case.role}"


@pytest.fixture
def version():
    """Return a version of another owner's agent that is not live."""
    agent = AgentFactory(id=THEIRS, owner_id="them")
    agent.edit({"name": "Two"})
    return str(agent.versions.get(version_number=1).pk)


@pytest.fixture
def caller(version):
    """Return a manager with an own agent. The key has just been used, so that its last use is not written again."""
    caller = Caller(api_key(member("manager", "us")))
    assert caller.post(AGENTS, {**NEW, "id": YOURS}).status_code == 201
    caller.get(agent_path(YOURS))
    return caller


def send_request(caller, case, agent_id, version):
    path = f"{agent_path(agent_id)}/{case.path.format(version=version)}".rstrip("/")
    headers = {"Idempotency_Key": str(uuid.uuid4())} if case.method == "POST" else {}
    return caller.call(case.method, path, case.body, **headers)


def status_and_queries(caller, case, agent_id, version):
    """Return the status and the SQL statements of a request, without their values."""
    with CaptureQueriesContext(connection) as captured:
        answer = send_request(caller, case, agent_id, version)
    return answer.status_code, [re.sub(r"'(?:[^']|'')*'|\bs\d+_x\d+\b", "…", query["sql"]) for query in captured]


@pytest.mark.parametrize("case", AGENT_CASES, ids=by_case)
def test_a_hidden_agent_runs_the_same_queries_as_a_missing_one(caller, version, case):
    theirs, missing = (status_and_queries(caller, case, agent_id, version) for agent_id in (THEIRS, NOBODYS))

    assert theirs[0] == 404
    assert len(theirs[1]) >= 2
    assert theirs == missing


def test_an_agent_that_others_just_read_asks_the_database_what_a_missing_one_does(caller, version):
    read = next(case for case in AGENT_CASES if case.method == "GET" and not case.path)
    assert Caller(api_key(member("manager", "them"))).get(agent_path(THEIRS)).status_code == 200

    theirs, missing = (status_and_queries(caller, read, agent_id, version) for agent_id in (THEIRS, NOBODYS))

    assert theirs[0] == 404
    assert theirs == missing


@pytest.mark.parametrize("case", [case for case in AGENT_CASES if "{version}" in case.path], ids=by_case)
def test_a_hidden_version_runs_the_same_queries_as_a_missing_one(caller, version, case):
    theirs, missing = (
        status_and_queries(caller, case, YOURS, version_id) for version_id in (version, str(uuid.uuid4()))
    )

    assert theirs[0] == 404
    assert theirs == missing


@pytest.fixture
def garbage_collection_disabled():
    """Keep the garbage collector from running during a request."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.drill
@pytest.mark.parametrize("case", AGENT_CASES, ids=by_case)
def test_hidden_and_missing_agents_take_the_same_time(caller, version, case, garbage_collection_disabled):
    seconds = {THEIRS: [], NOBODYS: []}
    for number in range(WARM_UP + ROUNDS):
        # Alternate the order, so that other load on the machine affects both alike.
        for agent_id in (THEIRS, NOBODYS) if number % 2 else (NOBODYS, THEIRS):
            began = time.thread_time()  # CPU time, which does not depend on other processes
            send_request(caller, case, agent_id, version)
            seconds[agent_id].append(time.thread_time() - began)

    pairs = list(zip(*(taken[WARM_UP:] for taken in seconds.values()), strict=True))
    # Compare consecutive requests: the speed of the machine changes within seconds.
    ratio = statistics.median(theirs / missing for theirs, missing in pairs)

    theirs, missing = (statistics.median(taken) * 1000 for taken in zip(*pairs, strict=True))
    print(f"{by_case(case)}: not yours {theirs:.3f} ms, not there {missing:.3f} ms, {ratio - 1:+.1%}")
    assert 0.85 < ratio < 1.15


# --- Every route of the application

# A resource is one of the caller's own realm, and a field is not a row.
NO_IDS_OF_OTHERS = {"resource_id", "field"}
HIDDEN_TEXT = "Two doors"  # with a space, which no random token contains


def test_concurrent_requests_for_ids_of_another_owner_reveal_nothing(client):
    ann, bob = member("manager", "ann", username="ann"), member("manager", "bob", username="bob")
    agent = AgentFactory(id="bobs", owner_id="bob")
    agent.edit({"name": HIDDEN_TEXT})
    key = ApiKey.objects.issue(bob)[0]
    job = enqueue("export_agents", requested_by=bob)
    run_fields = {"agent": agent, "agent_key": "bobs", "owner_id": "bob", "requested_by": bob}
    run = AgentRun.objects.create(**run_fields, configuration={"name": HIDDEN_TEXT}, input={"messages": []})
    ids = {"agent_id": "bobs", "version_id": agent.active_version_id, "job_id": job.pk, "key_id": key.pk, "number": 1}
    ids |= {"membership_id": bob.memberships.get().pk, "activation_id": agent.activations.first().pk}
    saved_input = SavedInput.objects.create(user=bob, agent=agent, name=HIDDEN_TEXT, text=HIDDEN_TEXT)
    ids |= {"run_id": run.pk, "input_id": saved_input.pk}
    dataset = Dataset.objects.create(id="bobs-questions", owner_id="bob", name=HIDDEN_TEXT)
    (item,) = add_items(dataset, [{"input": HIDDEN_TEXT}])
    experiment = Experiment.objects.create(dataset=dataset, dataset_version=1, name=HIDDEN_TEXT, is_external=True)
    gate = ReleaseGate.objects.create(agent=agent, dataset=dataset, scorer="exact", minimum=0.5)
    Scorer.objects.create(id="bobs-scorer", owner_id="bob")
    base = make_base("bobs-base", owner="bob")
    document = add_text(base, HIDDEN_TEXT, HIDDEN_TEXT)
    ids |= {"dataset_id": dataset.pk, "item_id": item.item_id, "experiment_id": experiment.pk, "gate_id": gate.pk}
    ids |= {"scorer_id": "bobs-scorer", "base_id": base.key, "document_id": document.pk, "key": base.key}
    ids |= {"vector_id": base.key, "index_id": base.key, "trace_id": run.pk, "span_id": "model", "result_id": item.pk}
    ids |= {"task_id": run.pk, "entity_type": "agent", "entity_id": "bobs", "revision": 1, "permission_id": 1}
    server = McpServer(key="bobs-server", title=HIDDEN_TEXT, owner_id="bob", url="https://mcp.example.org/mcp")
    server.save()
    ids |= {"server_id": server.key, "tool_id": "add"}
    call = PendingCallFactory(run=run, root_id=run.pk, arguments={"text": HIDDEN_TEXT})
    thread = add_thread(bob, key="bobs-thread", title=HIDDEN_TEXT)
    program = AcpAgent.objects.create(key="bobs-program", title=HIDDEN_TEXT, command_key="coder")
    deleted = AgentFactory(id="bobs-deleted", owner_id="bob", name=HIDDEN_TEXT)
    deleted.delete()
    ids |= {"approval_id": call.pk, "call_id": call.pk, "thread_id": thread.key, "user_id": bob.pk}
    ids |= {"acp_id": program.key, "deleted_id": DeletedAgent.objects.get().pk}
    whole = {"duplicate": {"id": "copy"}}  # the body is invalid without these
    of_run = {"runId": str(run.pk), "toolCallId": "c", "resumeData": {}, "name": "Ann was here"}
    of_run |= {"resourceId": "r", "threadId": "t", "approved": True, "decision": "approve"}
    of_run |= {"workingMemory": "Ann was here", "userId": ann.pk}
    api = Caller(api_key(ann))
    client.force_login(ann)
    before = stored_rows()

    # The admin has its own roles.
    names = {"/" + route.path: set(route.parameters) for route in all_routes() if not route.path.startswith("admin/")}
    assert set().union(*names.values()) - ids.keys() == NO_IDS_OF_OTHERS
    routes = [path for path, parameters in names.items() if parameters & ids.keys()]
    for route in routes:
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda match: str({**ids, "field": "tools"}[match[1]]), route)
        for method in ("GET", "POST", "PATCH", "DELETE", "PUT"):
            send_request = api.client.generic if path.startswith("/api/") else client.generic
            params = whole.get(path.rpartition("/")[2], of_run)
            body = json.dumps(params).encode() if path.startswith("/api/") else b"name=Ann+was+here"
            kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
            answer = send_request(
                method, f"{path}?from=live&to=head", body if method != "GET" else b"", content_type=kind
            )
            assert answer.status_code in (404, 405), (method, path, answer.status_code)
            assert HIDDEN_TEXT.encode() not in answer.content
        assert stored_rows() == before, path

    assert len(routes) > 30
    assert api.get(AGENTS).body["total"] == 0


def stored_rows():
    """Return everything that a request could have changed."""
    models = (Agent, AgentVersion, Activation, Job, ApiKey, Membership, AgentRun, SavedInput)
    models += (
        Dataset,
        ItemVersion,
        Experiment,
        ExperimentResult,
        ReleaseGate,
        Scorer,
        KnowledgeBase,
        Document,
        McpServer,
        PendingCall,
        Thread,
        Participant,
        AcpAgent,
        DeletedAgent,
    )
    return [list(model.objects.order_by("pk").exclude(**own(model)).values()) for model in models]


def own(model):
    return {"user__username": "ann"} if model is ApiKey else {}
