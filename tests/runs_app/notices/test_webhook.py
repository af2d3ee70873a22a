"""The webhook of approvals: its signature, its jobs and its retries."""

import contextlib
import hashlib
import hmac
import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_network

import pytest

from agentcms.checks.variables import check_notices
from jobs_app import runner
from jobs_app.models import Job
from runs_app.approvals.approval_signals import approval_stored
from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.approvals.suspending import new_call, rule_columns, save_suspension
from runs_app.models import PendingCall
from runs_app.notices import webhook
from tests.factories import member
from tests.runs_app.factories import RefundCallFactory, RunFactory

pytestmark = pytest.mark.django_db
SECRET = "a secret of more than thirty-two characters"


class Receiver(BaseHTTPRequestHandler):
    """A receiver that keeps the requests and answers with the status of its server."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def receiver(settings):
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    server.status, server.requests = 204, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.OUTBOUND_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.APPROVAL_WEBHOOK_URL = f"http://127.0.0.1:{server.server_port}/hook"
    settings.APPROVAL_WEBHOOK_SECRET = SECRET
    settings.PUBLIC_URL = "https://cms.example.org"
    yield server
    server.shutdown()
    server.server_close()


def deliver(call):
    """Send the signal and run its job. Return the job."""
    approval_stored.send(PendingCall, call=call)
    job = Job.objects.get(kind="approval_webhook", state="queued")
    return runner.run_claimed(str(job.pk))


def test_the_request_is_signed_and_has_no_arguments(receiver):
    call = RefundCallFactory()

    job = deliver(call)

    ((path, headers, body),) = receiver.requests
    timestamp = headers["Agentcms-Signature"].partition(",")[0].removeprefix("t=")
    digest = hmac.new(SECRET.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    sent = json.loads(body)
    assert (job.state, path) == ("done", "/hook")
    assert headers["Agentcms-Signature"] == f"t={timestamp},v1={digest}"
    assert headers["Agentcms-Delivery"] == sent["delivery"] == str(job.pk)
    assert (sent["event"], sent["approval"]["id"]) == ("approval_requested", str(call.pk))
    assert sent["approval"]["url"] == f"https://cms.example.org/approvals/{call.pk}"
    assert b"A-17" not in body


def test_a_decision_is_sent_with_who_made_it(receiver):
    deliver(RefundCallFactory(state="declined", decided_by_name="maya", reason="No"))

    sent = json.loads(receiver.requests[0][2])
    assert (sent["event"], sent["approval"]["state"], sent["approval"]["decidedBy"]) == (
        "approval_decided",
        "declined",
        "maya",
    )


def test_an_answer_without_an_end_is_given_up_in_time(receiver, monkeypatch):
    def trickle(self):
        with contextlib.suppress(OSError):
            for part in itertools.chain([b"HTTP/1.1 204 "], itertools.repeat(b"x")):
                self.wfile.write(part)
                time.sleep(0.1)

    monkeypatch.setattr(Receiver, "do_POST", trickle)
    monkeypatch.setattr(webhook, "WEBHOOK_TIMEOUT", 0.5)

    started = time.monotonic()
    assert deliver(RefundCallFactory()).state == "running"  # beat sends the job again
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_busy_receiver_gets_it_again(receiver, status):
    receiver.status = status

    job = deliver(RefundCallFactory())

    assert job.state == "running"  # with the next lease another attempt follows
    Job.objects.update(lease_until="2020-01-01T00:00Z")
    receiver.status = 200
    assert runner.run_claimed(str(job.pk)).state == "done"


@pytest.mark.parametrize(("status", "message"), [(302, "Redirects are not followed"), (401, "Check its URL")])
def test_a_redirect_or_refusal_fails_the_job(receiver, status, message):
    receiver.status = status

    job = deliver(RefundCallFactory())

    assert job.state == "failed"
    assert message in job.error
    assert len(receiver.requests) == 1


def test_private_addresses_are_refused(receiver, settings):
    settings.OUTBOUND_NETWORKS = []

    job = deliver(RefundCallFactory())

    assert job.state == "failed"
    assert "is a private address or a name of one" in job.error
    assert receiver.requests == []


def test_without_a_webhook_there_is_no_job(settings):
    settings.APPROVAL_WEBHOOK_URL = ""

    approval_stored.send(PendingCall, call=RefundCallFactory())

    assert not Job.objects.exists()


def test_a_process_that_dies_after_the_commit_loses_no_event(receiver):
    """The test runs in a transaction, so nothing of what follows a commit is called."""
    decider = member("editor")
    run = RunFactory(requested_by=decider, chunks=[], open=True, is_durable=True)
    call = new_call(run, "c1", "refund", {}, kind="approval", **rule_columns({}))
    save_suspension(run.pk, calls=[call], worked_ms=0, status="suspended", last_event_number=1)

    decide_pending_call(PendingCall.objects.get(), Decision(Verdict.DECLINE, "No"), decider, PendingCall.Via.PAGE)

    events = [job.parameters for job in Job.objects.filter(kind="approval_webhook").order_by("created_at")]
    assert [event["event"] for event in events] == ["approval_requested", "approval_decided"]
    assert [event["approval"]["state"] for event in events] == ["open", "declined"]


def test_incomplete_settings_are_reported(settings):
    settings.APPROVAL_WEBHOOK_URL, settings.APPROVAL_WEBHOOK_SECRET = "https://user:x@example.org", "short"
    settings.EMAIL_HOST, settings.PUBLIC_URL = "mail.example.org", ""

    assert [error.id for error in check_notices(None)] == ["agentcms.E011", "agentcms.E012", "agentcms.E013"]
