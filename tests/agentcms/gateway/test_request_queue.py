"""The limit of requests that Django handles at once."""

import threading

from agentcms.gateway.request_queue import RequestQueue


def test_jobs_above_the_limit_wait_without_a_thread():
    queue, release, done = RequestQueue(2), threading.Event(), []
    busy = [threading.Thread(target=queue.run, args=[release.wait]) for _ in range(2)]
    for thread in busy:
        thread.start()
    while queue.free:
        pass

    for number in range(3):
        queue.run(lambda number=number: done.append(number))  # returns at once

    assert done == []
    release.set()
    for thread in busy:
        thread.join(10)
    assert sorted(done) == [0, 1, 2]
    assert queue.free == 2


def test_no_job_is_lost_or_runs_twice():
    queue, done = RequestQueue(3), []
    threads = [threading.Thread(target=lambda n=n: queue.run(lambda: done.append(n))) for n in range(200)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert sorted(done) == list(range(200))
    assert (queue.free, len(queue.waiting)) == (3, 0)


def test_a_job_that_fails_leaves_its_place_to_others():
    queue, done = RequestQueue(1), []

    queue.run(lambda: 1 / 0)
    queue.run(lambda: done.append(True))

    assert done == [True]
