"""A key that the process read a moment ago is not read again, and yet ends the moment that it ends."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access_app import api_key_cache
from access_app.models import ApiKey, Membership
from agents_app.models import Agent
from tests.api_client import AGENTS, Caller, agent_path, version_path
from tests.factories import UserFactory, api_key, member

DOORS = {
    "list": lambda caller, version: caller.get(AGENTS),
    "walk through": lambda caller, version: caller.get(f"{AGENTS}?cursor="),
    "search": lambda caller, version: caller.get(f"{AGENTS}?search=guests"),
    "read": lambda caller, version: caller.get(agent_path("a")),
    "ask for the headers of": lambda caller, version: caller.client.head(agent_path("a")),
    "read a version of": lambda caller, version: caller.get(f"{agent_path('a')}?versionId={version}"),
    "read what is known of": lambda caller, version: caller.get(agent_path("a"), If_None_Match="*"),
    "edit": lambda caller, version: caller.patch(agent_path("a"), {"name": "Changed"}),
    "list the versions of": lambda caller, version: caller.get(agent_path("a", "versions")),
    "read one version of": lambda caller, version: caller.get(version_path(version, agent_id="a")),
    "compare versions of": lambda caller, version: caller.get(
        f"{agent_path('a', 'versions', 'compare')}?from=live&to=head"
    ),
}


def a_moment_ago():
    return timezone.now() - timedelta(seconds=1)  # SQLite's own clock tells thousandths


ENDINGS = {
    "was revoked": lambda user: ApiKey.objects.get(user=user).revoke(),
    "was deleted": lambda user: ApiKey.objects.filter(user=user).delete(),
    "has expired": lambda user: ApiKey.objects.filter(user=user).update(expires_at=a_moment_ago()),
    "is of a user who may not sign in": lambda user: (
        get_user_model().objects.filter(pk=user.pk).update(is_active=False)
    ),
    "is of a user who is gone": lambda user: user.delete(),
}


def key_is_read(captured):
    return any('FROM "access_app_apikey" INNER JOIN' in query["sql"] for query in captured)


@pytest.fixture
def user():
    return member("publisher", username="rita")


@pytest.fixture
def caller(user):
    """One whose key this process has read, and who has made an agent."""
    made = Caller(api_key(user))
    assert made.create("a").status_code == 201
    return made


@pytest.fixture
def version(caller):
    return str(Agent.objects.get().active_version_id)


@pytest.mark.parametrize("door", DOORS)
def test_a_key_is_read_once(caller, version, door):
    with CaptureQueriesContext(connection) as captured:
        assert DOORS[door](caller, version).status_code < 400

    assert not key_is_read(captured)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_ended_opens_nothing(caller, user, version, door, ending):
    assert DOORS[door](caller, version).status_code < 400
    before = Agent.objects.get().revision

    ENDINGS[ending](user)
    answers = [DOORS[door](caller, version) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [401, 401]
    assert Agent.objects.get().revision == before


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"{", "application/json"), (b'{"name": 5}', "application/json"), (b"name: New", "text/plain")],
    ids=["no JSON", "no agent", "another kind"],
)
def test_a_body_that_is_refused_does_not_hide_that_a_key_ended(caller, user, body, kind):
    caller.get(agent_path("a"))
    ENDINGS["was revoked"](user)

    assert caller.client.patch(agent_path("a"), body, content_type=kind).status_code == 401


def test_a_key_that_holds_again_is_believed_again(caller, user):
    ApiKey.objects.filter(user=user).update(revoked_at=timezone.now())
    assert caller.get(agent_path("a")).status_code == 401

    ApiKey.objects.filter(user=user).update(revoked_at=None)

    assert caller.get(agent_path("a")).status_code == 200


def test_who_is_no_superuser_any_more_sees_what_members_see(caller):
    root = UserFactory(is_superuser=True)
    seeing = Caller(api_key(root))
    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [200, 200]

    get_user_model().objects.filter(pk=root.pk).update(is_superuser=False)

    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [404, 404]


def test_who_becomes_a_superuser_sees_all(caller):
    nobody = UserFactory()
    seeing = Caller(api_key(nobody))
    assert [seeing.get(agent_path("a")).status_code for _ in range(2)] == [404, 404]

    get_user_model().objects.filter(pk=nobody.pk).update(is_superuser=True)

    assert seeing.get(agent_path("a")).status_code == 200


def test_who_was_renamed_edits_under_the_name_of_now(caller, user):
    caller.get(agent_path("a"))
    get_user_model().objects.filter(pk=user.pk).update(username="marga")

    assert caller.patch(agent_path("a"), {"name": "Changed"}).status_code == 200

    assert Agent.objects.get().head_version.author_name == "marga"


def test_a_membership_is_never_recalled(caller, user):
    assert caller.get(agent_path("a")).status_code == 200

    Membership.objects.filter(user=user).delete()

    assert caller.get(agent_path("a")).status_code == 404


@pytest.mark.parametrize(("before", "after", "status"), [("", "viewer", 403), ("viewer", "", 200)])
def test_a_key_is_cut_to_its_role_of_now(caller, user, before, after, status):
    cut = Caller(api_key(user, role=before, name="cut"))
    cut.get(agent_path("a"))
    cut.get(agent_path("a"))

    ApiKey.objects.filter(name="cut").update(role=after)

    assert cut.patch(agent_path("a"), {"name": "Changed"}).status_code == status


def test_an_empty_list_is_one_of_a_key_that_holds(user):
    nobody = Caller(api_key(UserFactory(username="nobody")))
    assert [nobody.get(AGENTS).body["agents"] for _ in range(2)] == [[], []]

    ApiKey.objects.filter(user__username="nobody").update(revoked_at=timezone.now())

    assert nobody.get(AGENTS).status_code == 401


def test_who_may_see_nothing_yet_sees_all_once_a_superuser(caller):
    nobody = UserFactory()
    seeing = Caller(api_key(nobody))
    assert seeing.get(AGENTS).body["agents"] == []

    get_user_model().objects.filter(pk=nobody.pk).update(is_superuser=True)

    assert [agent["id"] for agent in seeing.get(AGENTS).body["agents"]] == ["a"]


def test_what_is_not_there_is_asked_for_again_with_the_key_read_anew(caller):
    caller.get(agent_path("a"))

    with CaptureQueriesContext(connection) as captured:
        assert caller.get(agent_path("nowhere")).status_code == 404

    assert key_is_read(captured)


def test_the_use_of_a_key_is_still_noted_every_minute(caller, user):
    caller.get(agent_path("a"))
    long_ago = timezone.now() - timedelta(hours=1)
    # What the process recalls grows old, as the row does.
    ApiKey.objects.filter(user=user).update(last_used_at=long_ago)
    key = ApiKey.objects.select_related("user").get(user=user)
    api_key_cache.cache_key(key)

    caller.get(agent_path("a"))

    assert ApiKey.objects.get(user=user).last_used_at > long_ago


def test_a_process_recalls_no_more_than_so_many_keys(user):
    key, _ = ApiKey.objects.issue(user)
    for number in range(api_key_cache.MOST + 10):
        key.secret_hash = f"{number:064}"
        api_key_cache.cache_key(key)

    assert len(api_key_cache._read) <= api_key_cache.MOST
