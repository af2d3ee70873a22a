"""E-mail to the people who may decide waiting calls: at most one per hour and person, without arguments."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from agentcms.db.outages import logging_errors
from agentcms.wire.printable_text import printable
from runs_app.display.transcript import ToolCallPart
from runs_app.models import ApprovalNotice, PendingCall
from runs_app.models.pending_call import PendingCallQuerySet
from runs_app.notices.recipients import find_deciders

log = logging.getLogger(__name__)

NOTICE_INTERVAL = timedelta(hours=1)  # between two notices to one person
NOTICE_PERIOD = timedelta(days=3)  # in which a call is mailed: the mail server may be away for a weekend
CLAIM_DURATION = timedelta(minutes=5)  # longer than a mail server with `EMAIL_TIMEOUT` per step takes
MAX_MAILED_CALLS = 10  # calls in one e-mail
MAIL_TEXT = """{summary}

{calls}

Decide here: {url}/approvals

You get this e-mail at most once an hour. Switch it off here: {url}/account/notices
"""


def can_send_mail() -> bool:
    """Return whether the settings for e-mail with links are there."""
    return bool(settings.EMAIL_HOST and settings.PUBLIC_URL)


def send_mail_to_approvers() -> int:
    """Send e-mail about calls without a notice so far, and return the number of people. Beat calls this.

    The rows hold the state, so a message that could not be sent is sent later.
    """
    if not can_send_mail():
        return 0
    # The clock was set back since. Otherwise new calls would not be mailed before it is as late as it was.
    ApprovalNotice.objects.filter(sent_at__gt=Now()).update(sent_at=None)
    # Older calls may be very many, and were mailed already.
    recent = PendingCall.objects.waiting().exclude(kind=PendingCall.Kind.CHILD)
    recent = recent.filter(created_at__gt=timezone.now() - NOTICE_PERIOD)
    count = 0
    for user in find_deciders(recent):
        with logging_errors(log, "The notice about approvals to user %s failed. It is tried again later.", user.pk):
            count += mail_user(user)
    return count


def mail_user(user: User) -> bool:
    """Send a user an e-mail about new calls, unless there was one within the last hour. Return whether it was sent."""
    notice, _ = ApprovalNotice.objects.get_or_create(user=user)
    waiting = PendingCall.objects.decidable_by(user)
    new = waiting.filter(created_at__gt=notice.sent_at) if notice.sent_at else waiting
    if not user.email or not new.exists():
        return False
    claimed_at = claim_notice(user)
    if claimed_at is None:
        return False
    try:
        build_message(user, waiting).send()  # after the claim: later calls count as new
        ApprovalNotice.objects.filter(pk=user.pk).update(sent_at=claimed_at)
        return True
    except (SMTPException, OSError, ValueError) as error:  # ValueError: an address that cannot be in a header
        log.warning("The notice about approvals could not be sent to user %s: %s", user.pk, error)
        return False
    finally:
        ApprovalNotice.objects.filter(pk=user.pk).update(claimed_at=None)


def claim_notice(user: User) -> datetime | None:
    """Return the time of the claim if this process may send the next e-mail to a user, or None.

    One UPDATE decides between several processes. The claim of a process that died expires, so another one sends its
    e-mail.
    """
    due = Q(sent_at=None) | Q(sent_at__lte=timezone.now() - NOTICE_INTERVAL)
    free = Q(claimed_at=None) | Q(claimed_at__lte=Now() - CLAIM_DURATION)
    notice = ApprovalNotice.objects.filter(pk=user.pk)
    # By the clock of the database, which calls have too: one of a process may be ahead, and hide the next calls.
    is_claimed = notice.filter(due, free, by_email=True).update(claimed_at=Now())
    return notice.values_list("claimed_at", flat=True).first() if is_claimed else None


def build_message(user: User, waiting: PendingCallQuerySet) -> EmailMessage:
    """Return the e-mail. It names tools and agents, and has no arguments, which may be confidential."""
    count = waiting.count()
    summary = "A call waits for your decision." if count == 1 else f"{count} calls wait for your decision."
    lines = list_calls(waiting.order_by("-created_at")[:MAX_MAILED_CALLS])
    if count > MAX_MAILED_CALLS:
        lines.append(f"- and {count - MAX_MAILED_CALLS} more")
    text = MAIL_TEXT.format(summary=summary, calls="\n".join(lines), url=settings.PUBLIC_URL)
    headers = {"List-Unsubscribe": f"<{settings.PUBLIC_URL}/account/notices>"}
    return EmailMessage(summary.rstrip("."), text, to=[user.email], headers=headers)


def list_calls(calls: Iterable[PendingCall]) -> list[str]:
    """Return a line for each call: its tool, its agent, and who started the run."""
    return [
        single_line(
            f"- {ToolCallPart(call.call_id, call.tool).title}, agent {call.agent_key}, "
            f"started by {call.requested_by_name or 'the system'}"
        )
        for call in calls
    ]


def single_line(text: str) -> str:
    """Return a text without line breaks: the title of an MCP tool, which its server chooses, could add other links."""
    return " ".join(printable(text).split())
