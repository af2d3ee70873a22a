"""The webhook of approvals: a signed request for each call that waits for people, and for each decision."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from http import HTTPStatus

from django.conf import settings

from agentcms.errors import ApiError, Unavailable
from agentcms.outbound.addresses import AddressRefused, validate_url
from agentcms.wire.json_types import JSONObject
from agentcms.wire.timestamps import format_timestamp
from jobs_app.models import Job
from jobs_app.runner import enqueue, job_handler
from runs_app.models import PendingCall

WEBHOOK_JOB = "approval_webhook"
WEBHOOK_TIMEOUT = 10.0  # seconds until the status of the answer
REQUESTED_EVENT, DECIDED_EVENT = "approval_requested", "approval_decided"
PASSING_STATUSES = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


class WebhookRefused(ApiError):
    """The receiver of the webhook refuses the request, so repeating it does not help."""

    def __init__(self, message: str) -> None:
        super().__init__(502, message, "webhook_refused")


def enqueue_webhook(event: str, call: PendingCall) -> Job | None:
    """Have a worker send an event about a call. Return None without a webhook."""
    if not settings.APPROVAL_WEBHOOK_URL:
        return None
    return enqueue(WEBHOOK_JOB, {"event": event, "approval": webhook_payload(call)})


def webhook_payload(call: PendingCall) -> JSONObject:
    """Return a call without its arguments and its answer, which may be confidential. The API has them."""
    return {
        "id": str(call.pk),
        "runId": str(call.run_id),
        "rootRunId": str(call.root_id),
        "agentId": call.agent_key,
        "toolCallId": call.call_id,
        "toolName": call.tool,
        "kind": call.kind,
        "state": call.state,
        "role": call.role,
        "fourEyes": call.four_eyes,
        "requestedBy": call.requested_by_name,
        "decidedBy": call.decided_by_name,
        "via": call.via,
        "reason": call.reason,
        "createdAt": format_timestamp(call.created_at),
        "expiresAt": format_timestamp(call.expires_at) if call.expires_at else None,
        "decidedAt": format_timestamp(call.decided_at) if call.decided_at else None,
        "url": f"{settings.PUBLIC_URL}/approvals/{call.pk}" if settings.PUBLIC_URL else None,
    }


@job_handler(WEBHOOK_JOB, "Webhook of approvals")
def send_webhook(job: Job) -> JSONObject:
    """Send an event. A receiver that is away or busy gets it again with the next attempt of the job."""
    url = settings.APPROVAL_WEBHOOK_URL
    if not url:
        return {"status": None}  # switched off since
    body = json.dumps({"delivery": str(job.pk), **job.parameters}, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "AgentCMS",
        "Agentcms-Delivery": str(job.pk),  # the same in each attempt
        "Agentcms-Signature": sign(body, settings.APPROVAL_WEBHOOK_SECRET, int(time.time())),
    }
    return {"status": check_response_status(post(url, headers, body))}


def sign(body: bytes, secret: str, timestamp: int) -> str:
    """Return the signature of a body: `t=<seconds>,v1=<HMAC-SHA256 of "<seconds>.<body>">`."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256)
    return f"t={timestamp},v1={digest.hexdigest()}"


def check_response_status(status: int) -> int:
    """Return a status that means success. Raise Unavailable if another attempt may succeed, else WebhookRefused."""
    if 200 <= status < 300:
        return status
    if status >= 500 or status in PASSING_STATUSES:
        raise Unavailable(f"The webhook answered {status}.")
    if 300 <= status < 400:
        raise WebhookRefused(f"The webhook answered {status}. Redirects are not followed: enter the final URL.")
    raise WebhookRefused(f"The webhook answered {status}. Check its URL and its secret.")


def post(url: str, headers: dict[str, str], body: bytes) -> int:
    """Send a request to a checked address and return the status. Raise Unavailable if nobody answers."""
    import httpx2  # heavy

    try:
        validate_url(url)
        return asyncio.run(_post(url, headers, body))
    except AddressRefused as error:
        raise WebhookRefused(" ".join(error.messages)) from None
    except (httpx2.HTTPError, OSError) as error:
        raise Unavailable(f"The webhook could not be reached: {type(error).__name__}.") from None


async def _post(url: str, headers: dict[str, str], body: bytes) -> int:
    import httpx2  # heavy

    from agentcms.outbound.transport import CheckedTransport  # heavy

    # No proxy of the environment: it would connect to addresses that nobody checked.
    client = httpx2.AsyncClient(transport=CheckedTransport(), timeout=WEBHOOK_TIMEOUT, trust_env=False)
    # The limit of the client is one for each part of the answer, which a receiver could send without an end.
    in_time = asyncio.timeout(WEBHOOK_TIMEOUT)
    # The body of the response is not read: it may be of any size.
    async with in_time, client, client.stream("POST", url, headers=headers, content=body) as response:
        return response.status_code
