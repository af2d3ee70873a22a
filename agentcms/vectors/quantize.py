"""Vectors as 8-bit integers with a scale: a quarter of the size, and the same order of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentcms.vectors.embedders import Rows

LARGEST = 127  # of a signed byte
ROWS_PER_BATCH = 2048  # that are unpacked at once: 4 MB for 512 numbers


class PackedVector(NamedTuple):
    """A vector as signed bytes. Each number is its byte times the scale."""

    scale: float
    data: bytes


def pack(row: NDArray[np.float32]) -> PackedVector:
    """Return a vector in 8 bits per number."""
    import numpy as np

    scale = float(np.abs(row).max(initial=0.0)) / LARGEST or 1.0
    return PackedVector(scale, np.rint(row / scale).astype(np.int8).tobytes())


def unpack(packed: Sequence[PackedVector]) -> Rows:
    """Return packed vectors of one length as rows."""
    import numpy as np

    rows = np.frombuffer(b"".join(vector.data for vector in packed), np.int8).reshape(len(packed), -1)
    scales = np.fromiter((vector.scale for vector in packed), np.float32, len(packed))
    unpacked: Rows = rows.astype(np.float32)
    unpacked *= scales[:, None]
    return unpacked


def scores(query: NDArray[np.float32], packed: Iterable[PackedVector]) -> NDArray[np.float32]:
    """Return the similarity of a vector with each of the packed ones, from -1 to 1, in their order.

    For several vectors as rows, the result has a row for each packed one and a column for each of them.
    """
    import numpy as np

    vectors = iter(packed)
    parts = []
    while batch := [*islice(vectors, ROWS_PER_BATCH)]:
        parts.append(unpack(batch) @ query.T)
    return np.concatenate(parts) if parts else np.empty(0, np.float32)
