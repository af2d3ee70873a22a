"""Open streams of runs whose readers lose access."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from access_app.models import ApiKey
from runs_app.events import stream_access, streams
from runs_app.events.stream_chunks import build_chunk
from tests.factories import AgentFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(stream_access, "ACCESS_CHECK_INTERVAL", 0)
    yield
    streams.stream_slots.count_by_user.clear()


@pytest.fixture
def reader():
    """Return a member of a team who requests with an API key."""
    user = member("publisher", "support")
    user.api_key = ApiKey.objects.issue(user)[0]
    return user


def open_stream(run, user, **options):
    """Return the blocks of a stream of two events, of which the first is read."""
    batches = iter([[(1, build_chunk("start"))], [(2, build_chunk("step-start"))]])
    stream = streams.EventStream(run.pk, 0, streams.StreamSlot(user), numbered=True, batches=batches, **options)
    blocks = iter(stream)
    next(blocks)  # the headers
    assert b'"start"' in next(blocks)
    return blocks


def lose_key(user):
    user.api_key.revoke()


def let_key_expire(user):
    ApiKey.objects.filter(pk=user.api_key.pk).update(expires_at=timezone.now())


def lose_account(user):
    User.objects.filter(pk=user.pk).update(is_active=False)


def lose_membership(user):
    user.memberships.all().delete()


@pytest.mark.parametrize("lose", [lose_key, let_key_expire, lose_account, lose_membership])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_reader_who_loses_access_gets_no_further_event(lose, is_own, reader):
    """Former members may go on to read their own runs, but not the details that this stream sends."""
    run = RunFactory(agent=AgentFactory(owner_id="support"), **({"requested_by": reader} if is_own else {}))
    blocks = open_stream(run, reader)

    lose(User.objects.get(pk=reader.pk) if lose not in {lose_key, let_key_expire} else reader)

    assert [*blocks] == []
    assert streams.stream_slots.count_by_user.total() == 0


def test_a_superuser_who_is_none_any_more_gets_no_further_event():
    user = User.objects.create_superuser("root")
    blocks = open_stream(RunFactory(agent=AgentFactory(owner_id="support")), user)

    User.objects.filter(pk=user.pk).update(is_superuser=False)

    assert [*blocks] == []


def test_a_former_member_reads_the_answer_of_an_own_run_to_its_end(reader):
    run = RunFactory(agent=AgentFactory(owner_id="support"), requested_by=reader)
    lose_membership(reader)
    user = User.objects.get(pk=reader.pk)
    batches = iter([[(1, build_chunk("text-delta", id="0", text="Good"))]])
    stream = streams.EventStream(run.pk, 0, streams.StreamSlot(user), numbered=True, redacted=True, batches=batches)

    sent = b"".join(stream)

    assert (b"Good" in sent, sent.endswith(streams.DONE_BLOCK)) == (True, True)


def test_the_stream_of_a_run_that_was_deleted_says_so(reader):
    run = RunFactory(agent=AgentFactory(owner_id="support"))
    blocks = open_stream(run, reader)

    run.delete()

    assert [*blocks][-1] == streams.DONE_BLOCK


def test_short_streams_make_no_query_for_access(reader, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(stream_access, "ACCESS_CHECK_INTERVAL", 5)
    run = RunFactory(agent=AgentFactory(owner_id="support"))

    with django_assert_num_queries(0):
        assert [*open_stream(run, reader)][-1] == streams.DONE_BLOCK
