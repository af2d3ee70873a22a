"""A temporary broker for the Celery application of this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from agentcms.celery import app


@contextmanager
def broker(url: str) -> Iterator[None]:
    """Use this broker in the block. Drop the pools before and after, as their connections belong to one broker."""
    before = app.conf.broker_url
    app.conf.broker_url = url
    _drop_pools()
    try:
        yield
    finally:
        app.conf.broker_url = before
        _drop_pools()


def _drop_pools() -> None:
    app._pool = None  # close() would also deregister the application for new tasks
    app.amqp._producer_pool = None
