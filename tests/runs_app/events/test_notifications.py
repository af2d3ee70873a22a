"""Notifications of readers across processes, and polling without them."""

import logging
import socket
import threading
from uuid import uuid4

import pytest
import redis

from runs_app.events import notifications
from runs_app.events.notifications import FALLBACK_POLL_INTERVAL, RunNotifier
from tests.served import wait_until


@pytest.fixture
def two_notifiers(valkey):
    """Return two notifiers, as in two processes."""
    two_notifiers = RunNotifier(valkey), RunNotifier(valkey)
    for notifier in two_notifiers:
        notifier.start_listening()
    wait_until(lambda: all(notifier.is_subscribed for notifier in two_notifiers), 20, "the subscriptions")
    yield two_notifiers
    for notifier in two_notifiers:
        notifier.close()


def publish(here, act):
    """Publish a message. Repeat it where Valkey timed out on a busy machine."""
    act()
    while here.retry_at:
        here.retry_at = 0.0
        act()


def test_a_reader_in_another_process_is_notified(two_notifiers):
    here, there = two_notifiers
    run_id = uuid4()

    with there.subscribe(run_id) as woken, there.subscribe(uuid4()) as other:
        publish(here, lambda: here.notify({run_id: False}))

        assert woken.wait(10)
        assert not other.is_set()
    assert run_id not in there.readers


def test_readers_are_woken_before_the_notifier_counts_as_subscribed(valkey, monkeypatch):
    """A reader that subscribes then is not woken for nothing."""
    notifier, was_subscribed = RunNotifier(valkey), []
    monkeypatch.setattr(notifier, "wake_all", lambda: was_subscribed.append(notifier.is_subscribed))

    notifier.start_listening()
    wait_until(lambda: notifier.is_subscribed, 20, "the subscription")
    notifier.close()

    assert was_subscribed[0] is False


def test_a_process_ignores_its_own_messages(two_notifiers):
    here, there = two_notifiers
    run_id, other_id = uuid4(), uuid4()

    with here.subscribe(run_id) as woken, here.subscribe(other_id) as other:
        publish(here, lambda: here.notify({run_id: False}))
        assert woken.is_set()
        woken.clear()
        # Valkey delivers in order: after a later message, the own one was received too.
        with there.subscribe(run_id) as received:
            publish(here, lambda: here.notify({run_id: False}))
            assert received.wait(10)
        woken.clear()
        publish(there, lambda: there.notify({other_id: False}))

        assert other.wait(10)
        assert not woken.is_set()


def test_a_reader_of_the_end_is_not_woken_by_other_events():
    alone = RunNotifier("")
    run_id = uuid4()

    with alone.subscribe(run_id, ends_only=True) as woken:
        alone.notify({run_id: False})
        assert not woken.is_set()
        assert alone.only_end_is_awaited(run_id)
        with alone.subscribe(run_id):
            assert not alone.only_end_is_awaited(run_id)
            assert not alone.only_end_is_awaited(run_id, if_unread=True)
        alone.notify({run_id: True})

        assert woken.is_set()
    assert not alone.only_end_is_awaited(run_id)
    assert alone.only_end_is_awaited(run_id, if_unread=True)


def test_a_subscriber_waits_for_its_whole_timeout(two_notifiers):
    assert two_notifiers[0].poll_interval(5) == 5


def test_a_run_is_cancelled_in_the_process_that_runs_it(two_notifiers):
    here, there = two_notifiers
    stopped = []
    there.cancel_run = stopped.append
    run_id = uuid4()

    publish(here, lambda: here.request_cancel(run_id))

    wait_until(lambda: stopped == [run_id], 10)


def test_invalid_messages_on_the_channel_are_ignored(two_notifiers, valkey):
    here, there = two_notifiers
    there.cancel_run = pytest.fail
    run_id = uuid4()

    with redis.Redis.from_url(valkey) as stranger, there.subscribe(run_id) as woken:
        stranger.publish("agent.stream.nonsense", "stop")
        stranger.publish(b"agent.stream.\xff\xfe", b"\xff")
        publish(here, lambda: here.notify({run_id: False}))

        assert woken.wait(10)


def test_readers_poll_without_valkey():
    alone = RunNotifier("")

    with alone.subscribe(uuid4()):
        assert alone.poll_interval(5) == FALLBACK_POLL_INTERVAL
    assert alone.listener is None


def test_a_hanging_valkey_delays_nobody():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        alone = RunNotifier(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        thread = threading.Thread(target=alone.notify, args=[{uuid4(): False}], daemon=True)

        thread.start()
        thread.join(20)

        assert not thread.is_alive()
        assert alone.retry_at > 0


def test_an_unavailable_valkey_is_retried_after_a_pause(caplog):
    alone = RunNotifier("redis://127.0.0.1:1/0")
    alone.close()
    run_id = uuid4()

    with caplog.at_level(logging.WARNING), alone.subscribe(run_id) as woken:
        for _ in range(3):
            alone.notify({run_id: False})

        assert woken.is_set()
        assert alone.poll_interval(5) == FALLBACK_POLL_INTERVAL
    assert [record for record in caplog.records if "poll for" in record.message][1:] == []


@pytest.mark.parametrize(
    "error", [redis.ConnectionError("gone"), OSError("reset"), RuntimeError("Event loop is closed")]
)
def test_the_thread_for_notifications_goes_on_after_any_error(monkeypatch, error):
    monkeypatch.setattr(notifications, "RECONNECT_DELAY", 0.01)
    alone, errors, listens_again = RunNotifier("redis://127.0.0.1:1/0"), [error], threading.Event()

    def receive():
        if errors:
            alone.is_subscribed = True
            raise errors.pop()
        if alone.poll_interval(5) == FALLBACK_POLL_INTERVAL:  # until the next subscription
            listens_again.set()
        alone.close()

    monkeypatch.setattr(alone, "_receive", receive)
    alone.start_listening()

    assert listens_again.wait(10)
