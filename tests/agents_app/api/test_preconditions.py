"""ETag, If-None-Match and If-Match."""

import pytest

from agents_app.models import Agent
from tests.api_client import agent_path, version_path
from tests.factories import AgentFactory
from versions_app.models import AgentVersion


@pytest.fixture
def agent(api):
    return api.create()


def change_owner():
    Agent.objects.get().change_owner("elsewhere")
    Agent.objects.get().change_owner("")


def edit_another_agent():
    """Make more and later versions than the agent under test has."""
    other = AgentFactory()
    for number in range(5):
        other.edit({"name": f"Name {number}"})


def discard_draft():
    AgentVersion.objects.discard_draft(Agent.objects.get())


def test_every_agent_response_has_a_strong_etag(api, agent):
    patched = api.patch(agent_path(), {"name": "Two"})

    assert agent.headers["ETag"].startswith('"')
    assert patched.headers["ETag"] == api.get(agent_path()).headers["ETag"] != agent.headers["ETag"]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_a_matching_etag_is_304(api, agent, form):
    answer = api.get(agent_path(), If_None_Match=form.format(agent.headers["ETag"]))

    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["ETag"] == agent.headers["ETag"]


def test_a_changed_agent_is_sent(api, agent):
    api.patch(agent_path(), {"name": "Two"})

    assert api.get(agent_path(), If_None_Match=agent.headers["ETag"]).body["name"] == "Two"


def test_a_recreated_agent_has_another_etag(api, agent):
    api.delete(agent_path())

    assert api.create().headers["ETag"] != agent.headers["ETag"]


@pytest.mark.parametrize("form", ["{}", "W/{}", "*", '"x", {}'])
def test_a_write_with_the_current_etag_succeeds(api, agent, form):
    answer = api.patch(agent_path(), {"name": "Two"}, If_Match=form.format(agent.headers["ETag"]))

    assert answer.status_code == 200


@pytest.mark.parametrize("revision", ["9" * 5000, "9" * 30, "9" * 19, "0" * 5000, "٣"])
def test_a_revision_that_no_agent_has_is_stale(api, agent, revision):
    row_key = agent.headers["ETag"].partition(".")[0]

    answer = api.patch(agent_path(), {"name": "Two"}, If_Match=f'{row_key}.{revision}.0"')

    assert answer.status_code == 412


def test_registry_changes_do_not_make_a_write_stale(api, agent):
    other_registry = agent.headers["ETag"].rpartition(".")[0] + '.00000000"'

    assert api.patch(agent_path(), {"name": "Two"}, If_Match=other_registry).status_code == 200


@pytest.mark.parametrize("path", ["", "?status=draft", "?versionNumber=1"])
def test_a_changed_warning_is_sent_although_the_agent_is_the_same(api, path):
    api.create("helper")
    known = api.create(agents=["helper"]).headers["ETag"]
    api.delete(f"{agent_path('helper')}?force=true")

    answer = api.get(agent_path() + path, If_None_Match=known)

    assert (answer.status_code, answer.headers["ETag"] != known) == (200, True)
    assert [warning["key"] for warning in answer.body["warnings"]] == ["helper"]
    assert api.get(agent_path() + path, If_None_Match=answer.headers["ETag"]).status_code == 304


def test_a_changed_warning_does_not_make_a_write_stale(api):
    api.create("helper")
    known = api.create(agents=["helper"]).headers["ETag"]
    api.post(agent_path("helper", "archive") + "?force=true")

    assert api.patch(agent_path(), {"name": "Two"}, If_Match=known).status_code == 200


def test_a_412_has_the_etag_of_the_agent_with_its_warnings(api):
    stale = api.create(agents=["nobody"]).headers["ETag"]
    api.patch(agent_path(), {"name": "Two"})

    refused = api.patch(agent_path(), {"name": "Three"}, If_Match=stale)

    assert (refused.status_code, refused.headers["ETag"]) == (412, api.get(agent_path()).headers["ETag"])


def test_a_stale_write_is_refused_with_author_and_time(api, editor, agent):
    saved = editor.patch(agent_path(), {"name": "Two", "autoPublish": False})
    edit_another_agent()
    version = agent.body["activeVersionId"]

    writes = (
        ("PATCH", agent_path(), {"name": "Three"}),
        ("DELETE", agent_path(), None),
        ("POST", version_path(version, "activate"), None),
        ("POST", version_path(version, "restore"), None),
        ("POST", agent_path("concierge", "discard-draft"), None),
    )
    for method, path, body in writes:
        answer = api.call(method, path, body, If_Match=agent.headers["ETag"])

        assert (answer.status_code, answer.body["code"]) == (412, "precondition_failed")
        error = answer.body["error"]
        assert error.startswith("eddie saved version 2 at 20")
        assert "Z as a draft, changing name. " in error
        assert error.endswith("Read the agent and try again.")
        assert answer.headers["ETag"] == saved.headers["ETag"]
    assert api.get(agent_path()).headers["ETag"] == saved.headers["ETag"]


def test_a_stale_write_after_an_activation_names_it(api, agent):
    api.patch(agent_path(), {"name": "Two"})
    now = api.get(agent_path()).headers["ETag"]
    api.post(version_path(agent.body["activeVersionId"], "activate"))

    answer = api.patch(agent_path(), {"name": "x"}, If_Match=now)

    assert answer.body["error"].startswith("penny published version 1 at 20")


def test_a_stale_write_after_a_published_save_names_the_save(api, admin_caller, agent):
    saved = admin_caller.patch(agent_path(), {"name": "Two", "description": "Short"}).body

    answer = api.patch(agent_path(), {"name": "x"}, If_Match=agent.headers["ETag"])

    expected = f"root saved version 2 at {saved['updatedAt']} and published it, changing name, description."
    assert answer.body["error"] == f"{expected} Your changes of name touch theirs. Read the agent and try again."


def test_a_stale_write_after_a_save_by_code_names_the_system(api, agent):
    Agent.objects.get().edit({"name": "Two"})

    answer = api.delete(agent_path(), If_Match=agent.headers["ETag"])

    assert answer.body["error"].startswith("The system saved version 2 at 20")


def test_a_stale_write_after_archiving_names_who_archived(api, agent):
    archived = api.post(agent_path("concierge", "archive")).body

    answer = api.patch(agent_path(), {"name": "Two"}, If_Match=agent.headers["ETag"])

    assert answer.body["error"].startswith(f"penny archived the agent at {archived['archivedAt']}.")


@pytest.mark.parametrize("act", [change_owner, discard_draft], ids=lambda act: act.__name__)
def test_a_stale_write_after_a_change_without_version_names_the_time(api, agent, act):
    known = api.patch(agent_path(), {"name": "Two", "autoPublish": False}).headers["ETag"]
    act()
    changed = api.get(agent_path()).body["updatedAt"]

    answer = api.patch(agent_path(), {"name": "x"}, If_Match=known)

    expected = f"The owner changed, the draft was discarded, or the agent was unarchived or restored at {changed}."
    assert answer.body["error"] == f"{expected} Read the agent and try again."


def test_a_stale_write_after_a_new_agent_took_the_id_says_so(api, agent):
    api.delete(agent_path())
    created = api.create(description="Another one").body["createdAt"]

    for answer in (
        api.patch(agent_path(), {"name": "Two"}, If_Match=agent.headers["ETag"]),
        api.delete(agent_path(), If_Match=agent.headers["ETag"]),
    ):
        replaced = f"This is not the agent that you read, but another one with this ID, created at {created}."
        assert (answer.status_code, answer.body["error"]) == (412, f"{replaced} Read the agent and try again.")
        assert answer.body.keys() == {"error", "code"}
    assert api.get(agent_path()).body["name"] == "Concierge"


def test_a_stale_write_after_a_restore_from_the_trash_does_not_name_another_agent(api, agent):
    api.delete(agent_path())
    entry = api.get("/api/stored/deleted-agents").body["deletedAgents"][0]["id"]
    assert api.post(f"/api/stored/deleted-agents/{entry}/restore").status_code == 201

    error = api.patch(agent_path(), {"name": "Two"}, If_Match=agent.headers["ETag"]).body["error"]

    assert error.startswith("The owner changed, the draft was discarded, or the agent was unarchived or restored at ")


@pytest.mark.parametrize("options", [{}, {"autoPublish": False}], ids=["publish", "draft"])
@pytest.mark.parametrize(
    ("theirs", "mine", "changed", "touching"),
    [
        ({"description": "Short"}, {"name": "Two"}, ["description"], []),
        ({"name": "Three"}, {"name": "Two"}, ["name"], ["name"]),
        ({"name": "Two"}, {"name": "Two"}, ["name"], []),
        ({"instructions": "One\n2\n3"}, {"instructions": "1\n2\nThree"}, ["instructions"], []),
        ({"instructions": "One\n2\n3"}, {"instructions": "Uno\n2\n3"}, ["instructions"], ["instructions"]),
        ({"metadata": {"team": "a"}}, {"metadata": {"team": "b"}}, ["metadata"], ["metadata.team"]),
    ],
)
def test_a_stale_edit_says_whether_it_touches_the_changes_since(api, options, theirs, mine, changed, touching):
    known = api.create("porter", instructions="1\n2\n3").headers["ETag"]
    api.patch(agent_path("porter"), {**theirs, **options})
    api.patch(agent_path("porter"), {**options, "tools": ["calculator"]})
    edit_another_agent()

    answer = api.patch(agent_path("porter"), {**mine, **options}, If_Match=known)

    assert answer.status_code == 412
    assert {*answer.body["changedFields"]} == {*changed, "tools"}
    assert answer.body["touching"] == touching
    sentence = f"Your changes of {touching[0]} touch theirs." if touching else "Your changes do not touch theirs."
    assert f" {sentence} Read the agent and try again." in answer.body["error"]


def test_a_stale_edit_after_a_roll_back_is_compared_with_the_version_before(api, agent):
    known = api.patch(agent_path(), {"name": "Two"}).headers["ETag"]
    api.post(version_path(agent.body["activeVersionId"], "activate"))

    for options in ({}, {"autoPublish": False}):
        answer = api.patch(agent_path(), {"name": "Three", **options}, If_Match=known)

        assert (answer.body["changedFields"], answer.body["touching"]) == (["name"], ["name"])


@pytest.mark.parametrize("state", ["{key}.0.x", "{key}.999.x", "{key}.٣.x", "{key}.", "other.1.x", "{key}.-1.x"])
def test_a_stale_edit_of_an_unknown_state_says_nothing_about_the_changes(api, agent, state):
    tag = state.format(key=agent.headers["ETag"].strip('"').partition(".")[0])

    answer = api.patch(agent_path(), {"name": "Three"}, If_Match=f'"{tag}"'.encode().decode("latin-1"))

    assert answer.status_code == 412
    assert answer.body.keys() == {"error", "code"}


@pytest.mark.parametrize("tag", ["", " ", "x", "\xff"])
def test_a_malformed_precondition_fails(api, tag):
    api.create()

    answer = api.patch(agent_path(), {"name": "Porter"}, **{"If-Match": tag})

    assert answer.status_code == 412
    assert api.get(agent_path()).body["name"] == "Concierge"
