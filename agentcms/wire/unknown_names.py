"""Names in a request that nothing reads, each with the nearest name that is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import NamedTuple, get_args, get_origin

from pydantic import BaseModel

from agentcms.wire.names import join_path, printable_key

MAX_UNKNOWN_NAMES = 20  # in one response; each is compared with all known names
MIN_SIMILARITY = 0.7


class UnknownName(NamedTuple):
    """A name that nothing reads, with the members of a warning: its path, the name and a sentence."""

    field: str
    key: str
    message: str


def find_unknown_names(names: Iterable[str], known: Collection[str], path: str = "") -> list[UnknownName]:
    """Return the names that are not known. `path` is that of the object that has them."""
    unknown = [name for name in names if name not in known]
    items = [
        UnknownName(join_path(path, name), printable_key(name), unknown_name_message(name, known))
        for name in unknown[:MAX_UNKNOWN_NAMES]
    ]
    if more := len(unknown) - len(items):
        items.append(UnknownName(path, "", f"{more} more names are unknown."))
    return items


def find_unknown_below(model: type[BaseModel], body: object, path: str = "") -> list[UnknownName]:
    """Return the first unknown names in the objects of a body whose shapes the model knows, not in the body itself."""
    return list(islice(_unknown_below(model, body, path), MAX_UNKNOWN_NAMES))


def _unknown_below(model: type[BaseModel], body: object, path: str) -> Iterator[UnknownName]:
    for key, shape in _shapes_below(model):
        value = body.get(key) if isinstance(body, dict) else None
        place = join_path(path, key)
        parts = enumerate(value) if isinstance(value, list) else [(None, value)]
        for number, part in parts:
            if isinstance(part, dict):
                inside = place if number is None else f"{place}[{number}]"
                yield from find_unknown_names(part, wire_names(shape), inside)
                yield from _unknown_below(shape, part, inside)


@cache
def wire_names(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields of a model in JSON."""
    return frozenset(info.alias or name for name, info in model.model_fields.items())


@cache
def _shapes_below(model: type[BaseModel]) -> tuple[tuple[str, type[BaseModel]], ...]:
    """Return the fields of a model that are objects of another model, or lists of them, with that model."""
    shapes = ((info.alias or name, _shape_in(info.annotation)) for name, info in model.model_fields.items())
    return tuple((key, shape) for key, shape in shapes if shape is not None)


def _shape_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is dict:  # its names are data
        return None
    return next(filter(None, map(_shape_in, get_args(annotation))), None)


def unknown_name_message(name: str, known: Collection[str]) -> str:
    nearest = find_nearest_name(name, known)
    return f"This name is unknown. Did you mean {nearest}?" if nearest else "This name is unknown. Nothing reads it."


def find_nearest_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name that is most similar, or None. Case and underscores do not count."""
    by_letters = {_letters(candidate): candidate for candidate in known}
    # Cut: the comparison takes the product of both lengths.
    matches = get_close_matches(_letters(printable_key(name)), by_letters, n=1, cutoff=MIN_SIMILARITY)
    return by_letters[matches[0]] if matches else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
