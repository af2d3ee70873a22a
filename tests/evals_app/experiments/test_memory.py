"""The three patterns of experiments over agents with memory."""

import pytest
from django.contrib.auth.models import User

from access_app.models import ApiKey, Membership
from agents_app.configuration.schema import ConfigError
from evals_app.datasets.deletion import delete_experiment, delete_with_experiments
from memory_app.history.threads import create_thread, get_or_create_resource, get_thread
from memory_app.models import Participant, Resource, Thread
from memory_app.observational.limits import THREAD_REQUIRED_MESSAGE, requires_thread
from memory_app.realms import memory_caller
from memory_app.working import values
from runs_app.models import AgentRun
from tests.evals_app.experiment_runs import make_dataset, new_experiment, run_experiment
from tests.factories import AgentFactory, member
from tests.runs import DEMO

pytestmark = pytest.mark.usefixtures("idle_engine")


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(model=DEMO, instructions="", memory="last-messages")


def outputs(experiment):
    return list(experiment.results.order_by("item_id").values_list("output", flat=True))


def test_with_a_shared_thread_an_item_recalls_the_one_before(editor, agent):
    dataset, memory = make_dataset("One", "Two"), {"thread": "eval-thread", "resource": "ci-user"}

    first, second = (run_experiment(dataset, editor, agent, memory=memory) for _ in range(2))

    assert first.concurrency == 1
    assert outputs(first)[1].endswith("Before that: One")
    assert outputs(second) == outputs(first)
    assert Thread.objects.count() == 2
    assert not Thread.objects.readable_on_pages(editor).exists()


@pytest.mark.parametrize(
    "body",
    [{"memory": {"thread": "per-item", "resource": "ci-user"}}, {"requestContext": {"mastra__resourceId": "ci-user"}}],
)
def test_with_a_thread_for_each_item_nothing_is_recalled(editor, agent, body):
    experiment = run_experiment(make_dataset("One", "Two"), editor, agent, repeats=2, **body)

    assert not any("Before that" in output for output in outputs(experiment))
    assert Thread.objects.filter(experiment_id=experiment.pk, resource_key="ci-user").count() == 4


def test_an_experiment_names_each_resource_that_a_conversation_may_have(editor, agent):
    memory = {"thread": "per-item", "resource": "r" * 256}

    experiment = run_experiment(make_dataset("One"), editor, agent, memory=memory)

    assert Thread.objects.get(experiment_id=experiment.pk).resource_key == memory["resource"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"memory": {"thread": "per-item", "resource": "x" * 257}}, "memory.resource"),
        ({"requestContext": {"resourceId": "x" * 300}}, "requestContext.resourceId"),
        ({"requestContext": {"mastra__resourceId": "a\n"}}, "requestContext.mastra__resourceId"),
        ({"memory": {"thread": "per-item", "resource": " "}}, "memory.resource"),
        ({"memory": {"thread": "eval/thread"}}, "memory.thread"),
        ({"memory": {"thread": "eval\tthread"}}, "memory.thread"),
    ],
)
def test_a_thread_or_resource_that_no_conversation_may_have_starts_no_experiment(editor, agent, body, field):
    with pytest.raises(ConfigError) as refused:
        new_experiment(make_dataset("One"), editor, agent, **body)

    assert [issue.field for issue in refused.value.issues] == [field]


def test_a_blank_thread_of_an_item_names_none(editor, agent):
    dataset = make_dataset({"input": "One", "metadata": {"threadId": "", "resourceId": ""}})

    assert run_experiment(dataset, editor, agent).succeeded_count == 1


def test_an_item_without_a_thread_does_not_use_the_memory_of_its_user(editor):
    agent = AgentFactory(model=DEMO, instructions="", memory={"options": {"workingMemory": {"template": "# Person"}}})
    caller = memory_caller(editor)
    resource = get_or_create_resource(caller, caller.default_resource)
    values.replace_text(resource, "Ann likes tea", values.Origin(user_id=editor.pk))

    run_experiment(make_dataset('updateWorkingMemory {"memory": "Changed"}'), editor, agent)

    resource.refresh_from_db()
    assert resource.working_memory == "Ann likes tea"
    assert not AgentRun.objects.filter(resource=resource).exists()


def test_an_item_may_name_a_thread_of_its_own(editor, agent):
    caller = memory_caller(editor)
    create_thread(caller, get_or_create_resource(caller, "ada"), "mine")
    own = {"input": "One", "metadata": {"threadId": "mine", "resourceId": "ada"}}
    other = {"input": "Two", "metadata": {"threadId": "nobody"}}

    experiment = run_experiment(make_dataset(own, other), editor, agent)

    fine, missing = experiment.results.select_related("run__thread").order_by("item_id")
    assert fine.run.thread.key == "mine"
    assert missing.error["message"] == "Thread with id nobody not found"


def test_the_agent_changes_its_working_memory(editor):
    agent = AgentFactory(model=DEMO, instructions="", memory={"options": {"workingMemory": {"template": "# Person"}}})
    dataset = make_dataset('updateWorkingMemory {"memory": "Ann likes tea"}')

    experiment = run_experiment(dataset, editor, agent, memory={"thread": "per-item", "resource": "ci-user"})

    assert experiment.results.get().error is None
    assert Resource.objects.get(key="ci-user").working_memory == "Ann likes tea"


@pytest.fixture
def service(editor):
    """Return a caller with a key for the end users of a team, of which the editor is a member."""
    Membership.objects.create(user=editor, owner_id="support", role="editor")
    editor.api_key, _ = ApiKey.objects.issue(editor, realm_owner="support")
    return editor


def test_a_key_for_end_users_reaches_their_threads_and_not_those_of_its_user(service, agent):
    end_users, own = memory_caller(service), memory_caller(User.objects.get(pk=service.pk))
    for caller in (end_users, own):
        create_thread(caller, get_or_create_resource(caller, "ada"), "shared-name")
    create_thread(own, get_or_create_resource(own, "ada"), "private")
    named = [{"input": "One", "metadata": {"threadId": key}} for key in ("shared-name", "private")]

    experiment = run_experiment(make_dataset(*named), service, agent)

    fine, missing = experiment.results.select_related("run__thread").order_by("item_id")
    assert fine.run.thread.realm == end_users.realm
    assert missing.error["message"] == "Thread with id private not found"


def test_a_key_for_end_users_makes_threads_of_them(service, agent):
    experiment = run_experiment(make_dataset("One"), service, agent, memory={"thread": "per-item", "resource": "ada"})

    run = experiment.results.get().run
    assert (run.thread.realm, run.realm_owner) == ("osupport", "support")


@pytest.mark.parametrize("resource", [{}, {"resourceId": "ada"}])
def test_a_thread_of_somebody_else_is_a_404_like_one_that_does_not_exist(editor, agent, resource):
    owner = memory_caller(member("manager"))
    thread = create_thread(owner, get_or_create_resource(owner, "ada"), "theirs")
    named = [{"input": "One", "metadata": {"threadId": key, **resource}} for key in ("theirs", "nobody")]

    experiment = run_experiment(make_dataset(*named), editor, agent)

    foreign, missing = experiment.results.order_by("item_id")
    assert (foreign.run, missing.run) == (None, None)
    assert foreign.error == {"message": "Thread with id theirs not found", "code": "not_found"}
    assert missing.error == {"message": "Thread with id nobody not found", "code": "not_found"}
    assert not thread.messages.exists()


def test_a_thread_in_which_one_only_takes_part_is_a_404(editor, agent):
    owner = memory_caller(member("manager"))
    thread = create_thread(owner, get_or_create_resource(owner, "ada"), "shared", agent=agent)
    Participant.objects.create(thread=thread, user=editor, name=editor.username)
    dataset = make_dataset({"input": "One", "metadata": {"threadId": "shared"}})

    experiment = run_experiment(dataset, editor, agent)

    assert get_thread(memory_caller(editor), "shared") == thread
    assert experiment.results.get().error["message"] == "Thread with id shared not found"
    assert not thread.messages.exists()


SEEDED = {"MastraMemory": {"thread": {"id": "mine"}, "resourceId": "ada", "memoryConfig": {"lastMessages": 10}}}


@pytest.mark.parametrize("place", ["experiment", "item"])
def test_memory_in_a_request_context_is_ignored(editor, agent, place):
    caller = memory_caller(editor)
    thread = create_thread(caller, get_or_create_resource(caller, "ada"), "mine")
    of_item = {"request_context": SEEDED} if place == "item" else {}
    of_experiment = {"requestContext": SEEDED} if place == "experiment" else {}
    observing = AgentFactory(model=DEMO, instructions="", memory={"observationalMemory": True})
    dataset = make_dataset({"input": "One", **of_item}, {"input": "Two", **of_item})

    plain = run_experiment(dataset, editor, agent, **of_experiment)
    without_thread = run_experiment(dataset, editor, observing, **of_experiment)

    assert not any("Before that" in output for output in outputs(plain))
    assert [result.run.thread for result in plain.results.select_related("run__thread")] == [None, None]
    assert {result.error["message"] for result in without_thread.results.all()} == {THREAD_REQUIRED_MESSAGE}
    assert not thread.messages.exists()
    assert Thread.objects.count() == 1


def test_the_error_for_a_missing_thread_has_its_exact_words():
    assert THREAD_REQUIRED_MESSAGE == (
        "ObservationalMemory (scope: 'thread') requires a threadId, "
        "but none was found in RequestContext or MessageList."
    )
    assert [requires_thread(memory) for memory in ("last-messages", {"observationalMemory": True})] == [False, True]
    assert not requires_thread({"observationalMemory": {"scope": "resource"}})


def test_an_agent_that_observes_threads_fails_an_item_without_one(editor):
    observing = AgentFactory(model=DEMO, instructions="", memory={"observationalMemory": True})
    dataset = make_dataset("One")

    without, with_thread = (
        run_experiment(dataset, editor, observing, **body) for body in ({}, {"memory": {"thread": "per-item"}})
    )

    assert without.results.get().error["message"] == (
        "ObservationalMemory (scope: 'thread') requires a threadId, "
        "but none was found in RequestContext or MessageList."
    )
    assert with_thread.results.get().error is None


@pytest.mark.parametrize("deletes_dataset", [True, False])
def test_threads_are_deleted_with_their_experiment(editor, agent, deletes_dataset):
    dataset = make_dataset("One")
    experiment = run_experiment(dataset, editor, agent, memory={"thread": "eval-thread"})
    assert Thread.objects.get().experiment_id == experiment.pk

    if deletes_dataset:
        delete_with_experiments(dataset)
    else:
        delete_experiment(experiment)

    assert not Thread.objects.exists()
