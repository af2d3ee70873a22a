"""Another broker for the Celery application of this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from agentcms.celery import app


@contextmanager
def broker(url: str) -> Iterator[None]:
    """Send and receive there; the pools are dropped on both ends, because they keep connections to where they were."""
    before = app.conf.broker_url
    app.conf.broker_url = url
    _drop_pools()
    try:
        yield
    finally:
        app.conf.broker_url = before
        _drop_pools()


def _drop_pools() -> None:
    app._pool = None  # close() would also take the application out of those that new tasks are made for
    app.amqp._producer_pool = None
