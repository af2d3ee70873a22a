"""What is not yours takes the same steps as what is not there, on every route of an agent that the resolver knows."""

import re
import time
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.calls import AGENTS, Caller, agent_path
from tests.api.test_permissions import AGENT_CASES, NEW
from tests.factories import AgentFactory, api_key, member

YOURS, THEIRS, NOBODYS = "it-is-yours", "it-is-theirs", "it-is-nobody"  # the last two of one length
ROUNDS = 200


def by_case(case):
    return f"{case.method} {case.path} {case.role}"


@pytest.fixture
def version():
    """A version of somebody else's agent, which is not the live one."""
    agent = AgentFactory(id=THEIRS, owner_id="them")
    agent.edit({"name": "Two"})
    return str(agent.versions.get(version_number=1).pk)


@pytest.fixture
def caller(version):
    """A manager with an agent of their own, whose key was used just now, so that no note of its use is taken."""
    caller = Caller(api_key(member("manager", "us")))
    assert caller.post(AGENTS, {**NEW, "id": YOURS}).status_code == 201
    caller.get(agent_path(YOURS))
    return caller


def call(caller, case, agent_id, version):
    path = f"{agent_path(agent_id)}/{case.path.format(version=version)}".rstrip("/")
    headers = {"Idempotency_Key": str(uuid.uuid4())} if case.method == "POST" else {}
    return caller.call(case.method, path, case.body, **headers)


def steps(caller, case, agent_id, version):
    """The status and the statements of a call, without the values in them."""
    with CaptureQueriesContext(connection) as captured:
        answer = call(caller, case, agent_id, version)
    return answer.status_code, [re.sub(r"'(?:[^']|'')*'|\bs\d+_x\d+\b", "…", each["sql"]) for each in captured]


@pytest.mark.parametrize("case", AGENT_CASES, ids=by_case)
def test_an_agent_of_others_asks_the_database_what_a_missing_one_does(caller, version, case):
    theirs, missing = (steps(caller, case, agent_id, version) for agent_id in (THEIRS, NOBODYS))

    assert theirs[0] == 404
    assert len(theirs[1]) >= 2
    assert theirs == missing


@pytest.mark.parametrize("case", [case for case in AGENT_CASES if "{version}" in case.path], ids=by_case)
def test_a_version_of_others_asks_the_database_what_a_missing_one_does(caller, version, case):
    theirs, missing = (steps(caller, case, YOURS, each) for each in (version, str(uuid.uuid4())))

    assert theirs[0] == 404
    assert theirs == missing


@pytest.mark.drill
@pytest.mark.parametrize("case", AGENT_CASES, ids=by_case)
def test_neither_takes_longer(caller, version, case):
    seconds = {THEIRS: [], NOBODYS: []}
    for _ in range(ROUNDS):
        for agent_id, taken in seconds.items():
            began = time.perf_counter()
            call(caller, case, agent_id, version)
            taken.append(time.perf_counter() - began)

    # The machine's other work shows in the slow calls, the application's own in the quick ones.
    theirs, missing = (sorted(taken)[ROUNDS // 10] * 1000 for taken in seconds.values())

    print(f"{by_case(case)}: not yours {theirs:.2f} ms, not there {missing:.2f} ms")
    assert 0.8 < theirs / missing < 1.25
