"""Vectors of texts: embedding, packing and comparing them. Messages and documents keep their own rows of vectors.

numpy and the encoders are imported at their first use, because most processes embed nothing.
"""

import os

from agentcms.vectors import minilm, multilingual  # noqa: F401  they register their embedders
from agentcms.vectors.embedders import (
    Embedder,
    EmbedderFailed,
    UnknownEmbedder,
    absence_reason,
    find_embedder,
    local_embedders,
)

__all__ = ["Embedder", "EmbedderFailed", "UnknownEmbedder", "absence_reason", "find_embedder", "local_embedders"]

# Several threads of BLAS wait actively for each other: on small matrices that takes ten times the CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
