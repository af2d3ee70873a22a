"""Fixtures of tests of approvals."""

import pytest
from django.db import connection

from runs_app.approvals import resuming


@pytest.fixture
def dispatched(monkeypatch):
    """Return a function that calls what waits for the commit, and returns the IDs of the runs dispatched so far.

    No process executes these runs.
    """
    run_ids = []

    class Recorder:
        dispatch = continue_here = staticmethod(run_ids.append)

    def commit():
        callbacks, connection.run_on_commit = connection.run_on_commit, []
        for _, callback, _ in callbacks:
            callback()
        return run_ids

    monkeypatch.setattr(resuming, "get_runner", Recorder)
    return commit
