"""Functions that wait for a suspended run and decide its calls."""

from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.lookup import find_call
from runs_app.models import PendingCall
from tests.served import wait_until


def wait_for_suspension(run, segment=0):
    """Wait until a run waits for people, and return it."""

    def is_suspended():
        run.refresh_from_db()
        return run.is_finished or (run.status == "suspended" and run.segment == segment)

    wait_until(is_suspended, 30, f"the suspension of run {run.pk}")
    assert run.status == "suspended", run.error
    return run


def settle(run, verdict, call_id=None, *, user=None, **fields):
    """Decide the call of a run that an ID names, as the user who asked for the run."""
    decision = Decision(Verdict(verdict), **fields)
    return decide_pending_call(find_call(run, call_id), decision, user or run.requested_by, PendingCall.Via.API)
