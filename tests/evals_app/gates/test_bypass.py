"""Publishing despite a gate, over HTTP: for managers, with a reason that the live history shows."""

import pytest

from tests.api_client import Caller, agent_path
from tests.evals_app.gates.test_gates import live_number
from tests.factories import api_key, member

pytestmark = pytest.mark.django_db

REASON = "The old one is down."


def activate(caller, draft, body):
    return caller.post(agent_path("concierge", "versions", str(draft.pk), "activate"), body)


def restore(caller, draft, body):
    return caller.post(agent_path("concierge", "versions", str(draft.pk), "restore"), body)


def restore_and_publish(caller, draft, body):
    return restore(caller, draft, {"autoPublish": True, **body})


def patch(caller, draft, body):
    return caller.patch(agent_path(), {"instructions": "Three", **body})


def patch_and_publish(caller, draft, body):
    return patch(caller, draft, {"autoPublish": True, **body})


WAYS = [activate, restore, restore_and_publish, patch, patch_and_publish]


@pytest.mark.parametrize("act", WAYS)
def test_managers_publish_with_a_reason_in_every_way(agent, act):
    manager = Caller(api_key(member("manager")))

    done = act(manager, agent.head_version, {"bypassReason": REASON})

    assert done.status_code == 200, done.body
    assert live_number(agent) == (2 if act is activate else 3)
    assert agent.active_version.snapshot["instructions"] == ("Three" if act in WAYS[3:] else "Two")
    history = manager.get(agent_path("concierge", "activations")).body["activations"]
    assert history[0]["reason"] == f"Gates bypassed: {REASON}"


@pytest.mark.parametrize("act", WAYS)
def test_neither_publishers_nor_short_reasons_bypass_a_gate(agent, act):
    manager, publisher = (Caller(api_key(member(role))) for role in ("manager", "publisher"))

    short = act(manager, agent.head_version, {"bypassReason": "now"})
    blank = act(manager, agent.head_version, {"bypassReason": f" now{' ' * 12}"})
    refused = act(publisher, agent.head_version, {"bypassReason": REASON})

    assert (short.status_code, short.body["issues"][0]["field"]) == (400, "bypassReason")
    assert (blank.status_code, blank.body["issues"]) == (400, short.body["issues"])
    assert (refused.status_code, "Only managers may bypass a gate." in refused.body["error"]) == (403, True)
    agent.refresh_from_db()
    assert (live_number(agent), agent.last_version_number) == (1, 2)


@pytest.mark.parametrize("body", [{}, {"autoPublish": True}])
def test_a_patch_without_a_draft_ahead_bypasses_a_gate_too(agent, body):
    manager = Caller(api_key(member("manager")))
    manager.post(agent_path("concierge", "discard-draft"), {})

    done = manager.patch(agent_path(), {"instructions": "Three", "bypassReason": REASON, **body})

    assert (done.status_code, done.body["hasDraft"], live_number(agent)) == (200, False, 3)


def test_a_draft_stays_a_draft_with_a_reason(agent):
    manager = Caller(api_key(member("manager")))

    answer = manager.patch(agent_path(), {"instructions": "Three", "autoPublish": False, "bypassReason": REASON})

    assert (answer.status_code, answer.body["hasDraft"], live_number(agent)) == (200, True, 1)
