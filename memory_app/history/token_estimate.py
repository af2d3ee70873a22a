"""The estimated number of tokens of texts."""

from __future__ import annotations

BYTES_PER_TOKEN = 4  # tables of tokenizers would have to be downloaded


def count_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
