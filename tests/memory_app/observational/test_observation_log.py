"""The observations of a thread: contiguous, activated at thresholds, made anew after a deletion."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from memory_app.history.messages import delete_messages
from memory_app.models import Message, Observation, Thread
from memory_app.observational.leases import ObservingElsewhere, take_lease
from memory_app.observational.limits import newest_lines
from memory_app.observational.messages_to_observe import find_chunk
from memory_app.observational.observation_log import load_log, tokens_after
from memory_app.observational.observations_for_run import open_window
from memory_app.observational.storing import (
    ObserverAnswer,
    find_reflected,
    release_if_done,
    save_observation,
    save_reflection,
)
from tests.memory_app.observational.conftest import LIMITS, append, turns

pytestmark = pytest.mark.django_db


def observe(thread, lease=None, text="x" * 40):
    lease = lease or take_lease(thread.pk, from_dead_process=True)
    chunk = find_chunk(thread.pk, LIMITS, LIMITS.trigger_tokens)
    return bool(chunk) and save_observation(lease, chunk, ObserverAnswer(text, "demo/echo"), LIMITS)


def observe_all(thread, text="x" * 40):
    while observe(thread, text=text):
        pass


def ranges(rows):
    return [(row.first, row.last) for row in rows]


def test_they_wait_until_the_threshold_and_then_leave_a_fifth_raw(thread):
    append(thread, *turns(4))
    observe_all(thread)
    assert (ranges(load_log(thread.pk).active), ranges(load_log(thread.pk).buffered)) == ([], [(1, 4), (5, 8)])

    append(thread, *turns(1))
    window = open_window(thread.pk, LIMITS)

    assert (ranges(window.log.active), window.raw_tokens) == ([(1, 4), (5, 8)], 20)
    assert [len(activation.rows) for activation in window.activations] == [2]
    assert window.text == "x" * 40 + "\n" + "x" * 40


def test_a_reflection_is_prepared_at_half_and_takes_along_what_came_later(thread):
    append(thread, *turns(8))
    observe_all(thread, "y" * 80)
    log = load_log(thread.pk)
    reflected = find_reflected(log, LIMITS)
    assert ranges(reflected) == [(1, 4), (5, 8)]

    lease = take_lease(thread.pk, from_dead_process=True)
    assert not save_reflection(lease, reflected, ObserverAnswer("z" * 160, "demo/echo"), LIMITS)
    assert save_reflection(lease, reflected, ObserverAnswer("z" * 80, "demo/echo"), LIMITS)
    assert load_log(thread.pk).reflection.is_reflection
    assert not find_reflected(load_log(thread.pk), LIMITS)
    append(thread, *turns(6))
    observe_all(thread, "y" * 40)

    window = open_window(thread.pk, LIMITS)
    assert window.log.generation == 1
    assert ranges(window.log.active)[0] == (1, 8)
    assert window.text.splitlines()[0] == "z" * 80
    assert_contiguous(thread)
    assert Observation.objects.filter(generation=0, last__lte=8).count() == 2  # the log before stays


def assert_contiguous(thread):
    log = load_log(thread.pk)
    expected = 1
    for row in (*log.active, *log.buffered):
        assert row.first == expected
        expected = row.last + 1


def test_a_log_that_is_too_long_loses_its_oldest_lines(thread):
    append(thread, *turns(10))
    observe_all(thread, "\n".join(["old " * 5, "new " * 5]))

    window = open_window(thread.pk, replace(LIMITS, observation_tokens=6))

    assert window.has_left_out
    assert window.text.splitlines() == ["new " * 5]


def test_a_line_that_alone_is_too_long_loses_its_end():
    assert newest_lines("old\n" + "é" * 20, 5) == "é" * 10


def test_only_the_holder_of_the_lease_stores_observations(thread):
    append(thread, *turns(4))
    first = take_lease(thread.pk)
    assert take_lease(thread.pk) is None
    second = take_lease(thread.pk, from_dead_process=True)

    with pytest.raises(ObservingElsewhere):
        observe(thread, first)
    with pytest.raises(ObservingElsewhere):
        first.renew()
    first.release()
    assert observe(thread, second)
    assert Observation.objects.count() == 1


def test_a_lease_ends_only_when_nothing_is_left(thread):
    append(thread, *turns(2))
    lease = take_lease(thread.pk)

    assert not release_if_done(lease, LIMITS)
    assert observe(thread, lease)
    assert release_if_done(lease, LIMITS)
    assert Thread.objects.get().observing_until is None


def test_a_lease_from_before_the_clock_was_set_back_is_taken_by_another_process(thread):
    first = take_lease(thread.pk)
    assert take_lease(thread.pk) is None
    Thread.objects.update(observing_until=timezone.now() + timedelta(hours=1))

    assert take_lease(thread.pk) is not None
    with pytest.raises(ObservingElsewhere):
        first.renew()


def test_a_lease_that_has_expired_is_taken_by_another_process(thread):
    take_lease(thread.pk)
    Thread.objects.update(observing_until=timezone.now())
    assert take_lease(thread.pk) is not None


def test_messages_that_were_deleted_meanwhile_are_not_stored(thread):
    append(thread, *turns(4))
    lease = take_lease(thread.pk)
    chunk = find_chunk(thread.pk, LIMITS, 20)
    delete_messages([Message.objects.get(number=2)])

    assert not save_observation(lease, chunk, ObserverAnswer("secret", "demo/echo"), LIMITS)
    assert not Observation.objects.exists()


def test_deleting_a_message_deletes_the_observations_of_it_and_later_ones(thread):
    append(thread, *turns(6))
    observe_all(thread)
    assert load_log(thread.pk).observed_until == 12

    delete_messages([Message.objects.get(number=6)])

    assert load_log(thread.pk).observed_until == 4
    observe_all(thread)
    assert_contiguous(thread)
    assert tokens_after(thread.pk, load_log(thread.pk).observed_until) < 20


def test_the_log_and_the_window_take_few_queries(thread, django_assert_num_queries):
    append(thread, *turns(6))
    observe_all(thread)
    with django_assert_num_queries(3):
        open_window(thread.pk, LIMITS)
