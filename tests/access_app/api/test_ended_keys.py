"""Keys that are revoked, expired or deleted, and roles that change, between two requests."""

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from access_app.models import ApiKey, Membership
from agentcms.rate import Rate
from agents_app.models import Agent
from tests.api_client import AGENTS, Caller, agent_path, version_path
from tests.factories import UserFactory, api_key, member

REQUESTS = {
    "list": lambda caller, version: caller.get(AGENTS),
    "list by cursor": lambda caller, version: caller.get(f"{AGENTS}?cursor="),
    "search": lambda caller, version: caller.get(f"{AGENTS}?search=guests"),
    "read": lambda caller, version: caller.get(agent_path("a")),
    "head": lambda caller, version: caller.client.head(agent_path("a")),
    "read at a version": lambda caller, version: caller.get(f"{agent_path('a')}?versionId={version}"),
    "read if changed": lambda caller, version: caller.get(agent_path("a"), If_None_Match="*"),
    "edit": lambda caller, version: caller.patch(agent_path("a"), {"name": "Changed"}),
    "list versions": lambda caller, version: caller.get(agent_path("a", "versions")),
    "read a version": lambda caller, version: caller.get(version_path(version, agent_id="a")),
    "compare versions": lambda caller, version: caller.get(
        f"{agent_path('a', 'versions', 'compare')}?from=live&to=head"
    ),
}


ENDINGS = {
    "was revoked": lambda user: ApiKey.objects.get(user=user).revoke(),
    "was deleted": lambda user: ApiKey.objects.filter(user=user).delete(),
    "has expired": lambda user: ApiKey.objects.filter(user=user).update(expires_at=timezone.now()),
    "belongs to an inactive user": lambda user: get_user_model().objects.filter(pk=user.pk).update(is_active=False),
    "belonged to a deleted user": lambda user: user.delete(),
}


@pytest.fixture
def user():
    return member("publisher", username="rita")


@pytest.fixture
def caller(user):
    """Return a caller that has already created an agent with its key."""
    made = Caller(api_key(user))
    assert made.create("a").status_code == 201
    return made


@pytest.fixture
def version(caller):
    return str(Agent.objects.get().active_version_id)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_key_that_ended_is_refused_by_the_next_request(caller, user, version, request_name, ending):
    assert REQUESTS[request_name](caller, version).status_code < 400
    before = Agent.objects.get().revision

    ENDINGS[ending](user)
    answers = [REQUESTS[request_name](caller, version) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [401, 401]
    assert Agent.objects.get().revision == before


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"{", "application/json"), (b'{"name": 5}', "application/json"), (b"name: New", "text/plain")],
    ids=["no JSON", "no agent", "another kind"],
)
def test_a_key_that_ended_is_reported_before_an_invalid_body(caller, user, body, kind):
    caller.get(agent_path("a"))
    ENDINGS["was revoked"](user)

    assert caller.client.patch(agent_path("a"), body, content_type=kind).status_code == 401


def test_a_restored_key_works_again(caller, user):
    ApiKey.objects.filter(user=user).update(revoked_at=timezone.now())
    assert caller.get(agent_path("a")).status_code == 401

    ApiKey.objects.filter(user=user).update(revoked_at=None)

    assert caller.get(agent_path("a")).status_code == 200


def test_a_former_superuser_sees_what_members_see(caller):
    root = UserFactory(is_superuser=True)
    seeing = Caller(api_key(root))
    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [200, 200]

    get_user_model().objects.filter(pk=root.pk).update(is_superuser=False)

    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [404, 404]


def test_a_new_superuser_reads_every_agent(caller):
    nobody = UserFactory()
    seeing = Caller(api_key(nobody))
    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [404, 404]

    get_user_model().objects.filter(pk=nobody.pk).update(is_superuser=True)

    assert seeing.get(agent_path("a")).status_code == 200


def test_a_renamed_user_edits_under_the_new_name(caller, user):
    caller.get(agent_path("a"))
    get_user_model().objects.filter(pk=user.pk).update(username="marga")

    assert caller.patch(agent_path("a"), {"name": "Changed"}).status_code == 200

    assert Agent.objects.get().head_version.author_name == "marga"


def test_a_removed_membership_hides_the_agent(caller, user):
    assert caller.get(agent_path("a")).status_code == 200

    Membership.objects.filter(user=user).delete()

    assert caller.get(agent_path("a")).status_code == 404


@pytest.mark.parametrize(("before", "after", "status"), [("", "viewer", 403), ("viewer", "", 200)])
def test_a_changed_role_of_a_key_applies_to_the_next_request(caller, user, before, after, status):
    cut = Caller(api_key(user, role=before, name="cut"))
    cut.get(agent_path("a"))
    cut.get(agent_path("a"))

    ApiKey.objects.filter(name="cut").update(role=after)

    assert cut.patch(agent_path("a"), {"name": "Changed"}).status_code == status


def test_a_revoked_key_gets_no_empty_list(user):
    nobody = Caller(api_key(UserFactory(username="nobody")))
    assert [nobody.get(AGENTS).body["agents"] for _ in range(2)] == [[], []]

    ApiKey.objects.filter(user__username="nobody").update(revoked_at=timezone.now())

    assert nobody.get(AGENTS).status_code == 401


def test_a_new_superuser_lists_every_agent(caller):
    nobody = UserFactory()
    seeing = Caller(api_key(nobody))
    assert seeing.get(AGENTS).body["agents"] == []

    get_user_model().objects.filter(pk=nobody.pk).update(is_superuser=True)

    assert [agent["id"] for agent in seeing.get(AGENTS).body["agents"]] == ["a"]


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_throttled_key_is_refused_by_every_request(caller, version, request_name, settings):
    settings.API_THROTTLE = Rate(1, 10**9)
    caller.get(AGENTS)

    assert REQUESTS[request_name](caller, version).status_code == 429


@pytest.mark.parametrize("request_name", REQUESTS)
def test_no_request_is_served_without_a_key(version, request_name):
    assert REQUESTS[request_name](Caller(), version).status_code == 401
