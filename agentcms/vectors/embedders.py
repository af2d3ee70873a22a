"""Embedders by name: `local/…` for models that run in this process, `provider/model` for those of model providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from agentcms.errors import ApiError, OutsideError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

InputKind = Literal["query", "document"]

LOCAL_PREFIX = "local/"
PROVIDER_EXAMPLE = "openai/text-embedding-3-small"
UNKNOWN_EMBEDDER_MESSAGE = "Unknown embedder '{name}'. Choose {names}, or a model of a provider, such as {example}."


class UnknownEmbedder(ApiError):
    """A name of no embedder, or of one that is not available here. The message has the names of the others."""

    def __init__(self, message: str) -> None:
        super().__init__(400, message, "embedder_unknown")


class EmbedderFailed(OutsideError):
    """An embedder that returned no vectors. The message is for users and contains no secrets."""

    def __init__(self, message: str, *, is_rate_limited: bool = False) -> None:
        """Create the error. `is_rate_limited` says that the provider got more requests than it answers in a minute."""
        super().__init__(message)
        self.is_rate_limited = is_rate_limited


class Embedder(Protocol):
    """A model that turns texts into vectors. Texts of similar meaning have vectors of similar direction."""

    @property
    def name(self) -> str:
        """The name under which its vectors are stored."""

    @property
    def dimensions(self) -> int:
        """The length of its vectors, or 0 if only its first answer shows it."""

    def load(self) -> None:
        """Load what later calls need. A local model takes seconds. Repeated calls do nothing."""

    def embed(self, texts: Sequence[str], kind: InputKind) -> Rows:
        """Return one row of length 1 for each text. Blocks. Raise EmbedderFailed."""


# Builds the embedder of a model provider from its name. Raises UnknownEmbedder.
Resolver = Callable[[str], Embedder]

_local: dict[str, tuple[str, Embedder]] = {}
_absent: dict[str, str] = {}  # messages by name of embedders that are not installed
_resolvers: list[Resolver] = []


def register_local(embedder: Embedder, title: str) -> None:
    """Register an embedder that runs in this process."""
    _local[embedder.name] = (title, embedder)


def register_absent(name: str, message: str) -> None:
    """Register the reason why an embedder does not run in this process."""
    _absent[name] = message


def absence_reason(name: str) -> str:
    """Return why an embedder of this process is not there, or a blank text."""
    return _absent.get(name, "")


def register_resolver(resolver: Resolver) -> None:
    """Register the function that builds the embedders of model providers."""
    _resolvers[:] = [resolver]


def local_embedders() -> Mapping[str, str]:
    """Return the titles of the embedders that run in this process, by name."""
    return {name: title for name, (title, _) in _local.items()}


def find_embedder(name: str) -> Embedder:
    """Return the embedder with this name. Loads nothing yet. Raise UnknownEmbedder."""
    if name in _local:
        return _local[name][1]
    if name in _absent:
        raise UnknownEmbedder(_absent[name])
    provider, _, model = name.partition("/")
    if not (provider and model and _resolvers) or name.startswith(LOCAL_PREFIX):
        names = " or ".join(_local)
        raise UnknownEmbedder(UNKNOWN_EMBEDDER_MESSAGE.format(name=name, names=names, example=PROVIDER_EXAMPLE))
    return _resolvers[0](name)
