"""The context of a change: author, source, message and publishing."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import AnonymousUser

from agents_app.editing.change_context import NO_CHANGE_CONTEXT, Source, change, current_change
from agents_app.models import Agent
from tests.factories import AgentFactory, UserFactory


def test_there_is_no_context_outside_a_block():
    assert current_change() is NO_CHANGE_CONTEXT


def test_a_nested_block_inherits_unset_options():
    with change(message="outer", source=Source.IMPORT, publish=False), change(message="inner"):
        assert (current_change().message, current_change().source, current_change().publish) == (
            "inner",
            Source.IMPORT,
            False,
        )


def test_a_failed_block_restores_the_context():
    with pytest.raises(ZeroDivisionError), change(message="outer"), change(message="inner"):
        raise ZeroDivisionError

    assert current_change() is NO_CHANGE_CONTEXT


def test_options_end_with_their_block():
    with change(message="outer"):
        with change(message="inner", publish=True):
            pass

        assert (current_change().message, current_change().publish) == ("outer", None)


def test_another_thread_has_no_context():
    with change(message="here"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_change).result() is NO_CHANGE_CONTEXT


def test_a_reused_thread_has_no_context():
    def say() -> None:
        with change(message="there"):
            pass

    with ThreadPoolExecutor(1) as pool:
        pool.submit(say).result()

        assert pool.submit(current_change).result() is NO_CHANGE_CONTEXT


def test_an_unknown_source_is_refused():
    with pytest.raises(TypeError), change(mesage="typo"):
        pass

    assert current_change() is NO_CHANGE_CONTEXT


@pytest.mark.django_db
def test_a_version_records_author_source_and_message():
    ann = UserFactory(username="ann")
    agent = AgentFactory()

    with change(actor=ann, source=Source.PAGE, message="Softer greeting", name="Autumn"):
        agent.edit({"instructions": "Greet softly."})

    version = agent.versions.first()
    assert (version.author, version.author_name, version.source) == (ann, "ann", "page")
    assert (version.change_message, version.name) == ("Softer greeting", "Autumn")


@pytest.mark.django_db
def test_an_activation_records_actor_source_and_reason():
    ann = UserFactory(username="ann")
    agent = AgentFactory()
    agent.edit({"name": "Porter"})

    with change(actor=ann, source=Source.ADMIN, message="Too stiff"):
        agent.versions.last().activate()

    activation = agent.activations.first()
    assert (activation.author, activation.author_name) == (ann, "ann")
    assert (activation.source, activation.reason) == ("admin", "Too stiff")


@pytest.mark.django_db
def test_the_actor_is_read_when_the_version_is_written():
    request = {"user": AnonymousUser()}
    with change(read_actor=lambda: request["user"]):
        request["user"] = UserFactory(username="ann")  # as DRF authenticates inside the view

        agent = AgentFactory()

    assert agent.head_version.author_name == "ann"


@pytest.mark.django_db
def test_an_anonymous_user_is_no_actor():
    with change(actor=AnonymousUser()):
        agent = AgentFactory()

    assert (agent.head_version.author, agent.head_version.author_name) == (None, "")


@pytest.mark.django_db
def test_the_author_name_outlives_the_user():
    ann = UserFactory(username="ann")
    with change(actor=ann):
        agent = AgentFactory()

    ann.delete()

    version, activation = agent.versions.get(), agent.activations.get()
    assert (version.author, version.author_name) == (None, "ann")
    assert (activation.author, activation.author_name) == (None, "ann")
    assert Agent.objects.get(pk=agent.pk).active_version == version


@pytest.mark.django_db
def test_the_author_name_is_the_name_at_the_time_of_the_change():
    ann = UserFactory(username="ann")
    with change(actor=ann):
        agent = AgentFactory()

    ann.username = "anna"
    ann.save()

    assert agent.versions.get().author_name == "ann"
