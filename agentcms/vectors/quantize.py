"""Vectors as 8-bit integers with a scale: a quarter of the size, and the same order of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agentcms.vectors.embedders import Rows

LARGEST = 127  # of a signed byte
ROWS_PER_BLOCK = 1024  # that are unpacked at once: 2 MB for 512 numbers, which fit into the cache of a processor


class PackedVector(NamedTuple):
    """A vector as signed bytes. Each number is its byte times the scale."""

    scale: float
    data: bytes


def pack_vector(row: NDArray[np.float32]) -> PackedVector:
    """Return a vector in 8 bits per number."""
    import numpy as np

    # 1 for a vector of zeros, which would otherwise be divided by 0.
    scale = float(np.abs(row).max(initial=0.0)) / LARGEST or 1.0
    return PackedVector(scale, np.rint(row / scale).astype(np.int8).tobytes())


def unpack_vector(packed: PackedVector) -> NDArray[np.float32]:
    """Return a packed vector as numbers."""
    import numpy as np

    numbers: NDArray[np.float32] = np.frombuffer(packed.data, np.int8).astype(np.float32)
    return numbers * np.float32(packed.scale)


def similarity_scores(queries: Rows, scales: Sequence[float], data: Sequence[bytes]) -> NDArray[np.float32]:
    """Return the best similarity of each packed vector with any of the queries, from -1 to 1, in their order.

    Args:
        queries: Vectors as rows, at least one.
        scales: The scale of each packed vector.
        data: The bytes of each packed vector, one for each number of a query.
    """
    import numpy as np

    best = np.empty(len(data), np.float32)
    packed = np.frombuffer(b"".join(data), np.int8).reshape(len(data), queries.shape[1])
    for start in range(0, len(data), ROWS_PER_BLOCK):
        block = packed[start : start + ROWS_PER_BLOCK].astype(np.float32)
        best[start : start + ROWS_PER_BLOCK] = (block @ queries.T).max(axis=1)
    best *= np.asarray(scales, np.float32)
    # The rounded numbers of a packed vector may make it a little longer than 1.
    return np.clip(best, -1, 1, out=best)
