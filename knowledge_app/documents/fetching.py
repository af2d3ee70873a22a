"""Documents by URL. Connections to private addresses are refused, and no redirect is followed."""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from urllib.parse import urlsplit

from agentcms.outbound.addresses import AddressRefused, validate_url
from knowledge_app.documents.errors import DocumentError
from knowledge_app.documents.size_limit import reject_large_document

FETCH_TIMEOUT = 30  # seconds for the whole document
# Without the address: everybody who may add a document could look up the names of the internal network.
PRIVATE_ADDRESS_MESSAGE = (
    "'{host}' has a private address, to which connections are not allowed. Ask the operator to add its network to "
    "OUTBOUND_NETWORKS."
)
COMPRESSED_MESSAGE = "The URL answered with a compressed document. Download it and upload it here."
HEADERS = {"User-Agent": "AgentCMS", "Accept": "text/html, text/markdown, text/plain, application/pdf"}


class FetchedDocument(NamedTuple):
    """The content of a URL."""

    content: bytes
    media_type: str


def fetch_document(url: str) -> FetchedDocument:
    """Return the content of a URL. Raise DocumentError."""
    try:
        validate_url(url)
    except AddressRefused as error:
        raise DocumentError(" ".join(error.messages)) from None
    try:
        return asyncio.run(_fetch_in_time(url))
    except AddressRefused:
        raise DocumentError(PRIVATE_ADDRESS_MESSAGE.format(host=urlsplit(url).hostname)) from None
    except TimeoutError:
        raise DocumentError(f"The URL did not answer within {FETCH_TIMEOUT} seconds.") from None


async def _fetch_in_time(url: str) -> FetchedDocument:
    import httpx2  # heavy

    from agentcms.outbound.transport import CheckedTransport, is_compressed  # heavy

    async with asyncio.timeout(FETCH_TIMEOUT):
        # No proxy of the environment: it would connect to addresses that nobody checked.
        client = httpx2.AsyncClient(transport=CheckedTransport(), timeout=FETCH_TIMEOUT, trust_env=False)
        try:
            async with client, client.stream("GET", url, headers=HEADERS) as response:
                if response.is_redirect:
                    raise DocumentError("The URL redirects to another one. Add that one instead.")
                if response.status_code != 200:
                    raise DocumentError(f"The URL answered with the status {response.status_code}.")
                if is_compressed(response):
                    raise DocumentError(COMPRESSED_MESSAGE)
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    reject_large_document(len(content))
                return FetchedDocument(bytes(content), response.headers.get("Content-Type", ""))
        except httpx2.HTTPError as error:
            raise DocumentError(f"The URL could not be read: {type(error).__name__}.") from None
