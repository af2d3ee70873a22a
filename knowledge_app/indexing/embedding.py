"""The embedding of chunks in batches, with repeated attempts while an embedder does not answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from agentcms.vectors.embedders import Embedder, EmbedderFailed
from agentcms.vectors.quantize import PackedVector, pack_vector

log = logging.getLogger(__name__)

BATCH_SIZE = 32
ATTEMPTS = 4
FIRST_WAIT = 1.0  # seconds; each further wait is twice as long
FIRST_WAIT_OF_LIMIT = 10.0  # all waits together are longer than the minute in which providers count requests

wait = time.sleep  # a name that tests replace


def embed_chunks(embedder: Embedder, texts: Sequence[str]) -> list[PackedVector]:
    """Return the packed vectors of a batch of texts. Raise EmbedderFailed after the last attempt."""
    # The error of the last attempt, which follows the loop, is raised.
    for attempt in range(ATTEMPTS - 1):
        try:
            return embed_once(embedder, texts)
        except EmbedderFailed as error:
            log.warning("The embedder %s failed and is asked again: %s", embedder.name, error)
            wait((FIRST_WAIT_OF_LIMIT if error.is_rate_limited else FIRST_WAIT) * 2**attempt)
    return embed_once(embedder, texts)


def embed_once(embedder: Embedder, texts: Sequence[str]) -> list[PackedVector]:
    return [pack_vector(row) for row in embedder.embed(texts, "document")]
