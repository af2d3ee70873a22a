"""Documents by URL. Connections to private addresses are refused, and no redirect is followed."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError

from agentcms.outbound.addresses import validate_url
from knowledge_app.documents.errors import DocumentError

TIMEOUT = 30  # seconds for the whole document
HEADERS = {"User-Agent": "AgentCMS", "Accept": "text/html, text/markdown, text/plain, application/pdf"}


class FetchedDocument(NamedTuple):
    """The content of a URL."""

    content: bytes
    media_type: str


def fetch_document(url: str) -> FetchedDocument:
    """Return the content of a URL. Raise DocumentError."""
    try:
        validate_url(url)
        return asyncio.run(_fetch_in_time(url))
    except ValidationError as error:  # also of each connection
        raise DocumentError(" ".join(error.messages)) from None
    except TimeoutError:
        raise DocumentError(f"The URL did not answer within {TIMEOUT} seconds.") from None


async def _fetch_in_time(url: str) -> FetchedDocument:
    import httpx2  # heavy

    from agentcms.outbound.transport import CheckedTransport  # heavy

    async with asyncio.timeout(TIMEOUT):
        # No proxy of the environment: it would connect to addresses that nobody checked.
        client = httpx2.AsyncClient(transport=CheckedTransport(), timeout=TIMEOUT, trust_env=False)
        try:
            async with client, client.stream("GET", url, headers=HEADERS) as response:
                if response.is_redirect:
                    raise DocumentError("The URL redirects to another one. Add that one instead.")
                if response.status_code != 200:
                    raise DocumentError(f"The URL answered with the status {response.status_code}.")
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    reject_large(len(content))
                return FetchedDocument(bytes(content), response.headers.get("Content-Type", ""))
        except httpx2.HTTPError as error:
            raise DocumentError(f"The URL could not be read: {type(error).__name__}.") from None


def reject_large(size: int) -> None:
    """Raise DocumentError if a document is larger than the limit."""
    limit: int = settings.KNOWLEDGE_MAX_DOCUMENT_BYTES
    if size > limit:
        raise DocumentError(f"The document is larger than {limit // 1024 // 1024} MB. Divide it.")
