"""Access to pages of versions."""

import pytest
from django.test import Client
from django.urls import reverse

from access_app.role import Role
from tests.factories import AgentFactory, member
from tests.history_pages import agent_state
from tests.page_client import browser
from versions_app.urls import urlpatterns

pytestmark = pytest.mark.django_db

NUMBERS = {"number": 1, "activation_id": 1}
POST_ONLY = {"bring_back", "take_back", "undo", "review", "conflict"}
OF_THE_AGENT = {"list", "recent", "compare", "review", "conflict", "snapshot", "discard_draft", "live_history"}
READ_ONLY = {"list", "recent", "compare", "view", "download", "live_history"}
ALL_ROUTES = [pattern.name for pattern in urlpatterns]


def address(name, agent_id, **other):
    (pattern,) = (pattern for pattern in urlpatterns if pattern.name == name)
    converters = pattern.pattern.converters
    return reverse(
        f"versions:{name}",
        kwargs={"agent_id": agent_id, **{key: {**NUMBERS, **other}[key] for key in converters if key != "agent_id"}},
    )


@pytest.mark.parametrize("name", ALL_ROUTES)
def test_an_agent_of_another_owner_is_not_found(name):
    agent = AgentFactory(owner_id="newsroom")
    stranger = browser(member(Role.MANAGER, "elsewhere"))

    answers = [stranger.get(address(name, agent.pk)), stranger.post(address(name, agent.pk))]

    assert {answer.status_code for answer in answers} <= {404, 405}
    assert 404 in {answer.status_code for answer in answers}
    assert agent.name not in "".join(answer.content.decode() for answer in answers)


@pytest.mark.parametrize(
    "name",
    sorted({*ALL_ROUTES} - OF_THE_AGENT),
)
def test_a_version_of_another_agent_is_not_found(publisher, story, name):
    other = AgentFactory()
    theirs = story.activations.first().pk

    for number in (3, 99, 10**30):
        answers = [
            call(address(name, other.pk, number=number, activation_id=theirs))
            for call in (publisher.get, publisher.post)
        ]
        assert {answer.status_code for answer in answers} <= {404, 405}


@pytest.mark.parametrize("name", ALL_ROUTES)
def test_an_anonymous_user_is_redirected_to_sign_in(story, name):
    method = "post" if name in POST_ONLY else "get"

    response = getattr(Client(), method)(address(name, story.pk))

    assert response.status_code == 302
    assert response.headers["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", ALL_ROUTES)
def test_get_requests_write_nothing(publisher, drafted, name):
    before = agent_state(drafted)

    response = publisher.get(address(name, drafted.pk))

    assert response.status_code == (405 if name in POST_ONLY else 200)
    assert agent_state(drafted) == before


@pytest.mark.parametrize("name", sorted({*ALL_ROUTES} - READ_ONLY))
def test_every_write_needs_a_csrf_token(drafted, name):
    client = Client(enforce_csrf_checks=True)
    client.force_login(member(Role.PUBLISHER))
    before = agent_state(drafted)

    response = client.post(address(name, drafted.pk), {"live": 3, "head": 4, "publish": "yes"})

    assert response.status_code == 403
    assert agent_state(drafted) == before
