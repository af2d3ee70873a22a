"""References in JSON Schemas that users write: whether each leads to a schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentcms.wire.json_types import JSONMapping

if TYPE_CHECKING:
    from referencing import Resource
    from referencing._core import Resolver
    from referencing.exceptions import Unresolvable

    Place = tuple[Resource[Any], Resolver[Any]]  # a part of a schema, and what resolves its references

REFERENCES = ("$ref", "$dynamicRef")
MAX_REFERENCE_LENGTH = 300  # characters of one in a message


def reject_broken_references(schema: JSONMapping) -> None:
    """Raise ValueError if a reference leads out of a schema, or to a part of it that is not a schema.

    The check of a schema leaves out unknown members, but references may lead into them.
    """
    waiting = [root_of(schema)]
    seen: set[int] = set()
    while waiting:
        for place in parts_of(waiting.pop(), seen):
            waiting += targets_of(place, seen)


def root_of(schema: object) -> Place:
    """Return a schema and what resolves its references, without requests to other servers."""
    from referencing import Registry  # loads slowly
    from referencing.jsonschema import DRAFT202012

    resource = DRAFT202012.create_resource(schema)
    uri = resource.id() or ""
    registry: Registry[Any] = Registry().with_resource(uri, resource)
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # what is not a schema
        # Crawled once: a registry that is not would read the whole schema again for each name that a reference has.
        registry = registry.crawl()
    return resource, registry.resolver(base_uri=uri)


def parts_of(place: Place, seen: set[int]) -> list[Place]:
    """Return a part of a schema with all parts in it that are schemas themselves, and add them to `seen`."""
    waiting, places = [place], []
    while waiting:
        resource, resolver = waiting.pop()
        seen.add(id(resource.contents))
        places.append((resource, resolver))
        waiting += [(part, resolver.in_subresource(part)) for part in resource.subresources()]
    return places


def targets_of(place: Place, seen: set[int]) -> Iterator[Place]:
    """Yield the targets of the references of a part that are not in `seen`. Raise ValueError."""
    resource, resolver = place
    if not isinstance(resource.contents, dict):
        return
    for name in REFERENCES:
        reference = resource.contents.get(name)
        if isinstance(reference, str):
            target = find_target_of(reference, resolver)
            if id(target[0].contents) not in seen:
                reject_other_than_schema(reference, target[0].contents)
                yield target


def find_target_of(reference: str, resolver: Resolver[Any]) -> Place:
    from referencing.exceptions import Unresolvable  # loads slowly
    from referencing.jsonschema import DRAFT202012

    try:
        target = resolver.lookup(reference)
    except Unresolvable as error:
        raise ValueError(f"it {leads_out(error)}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # a path through a text, for example
        raise ValueError(f"it {leads_to_no_schema(reference)}") from None
    return DRAFT202012.create_resource(target.contents), target.resolver


def reject_other_than_schema(reference: str, target: Any) -> None:
    from jsonschema import Draft202012Validator, SchemaError  # loads slowly

    try:
        Draft202012Validator.check_schema(target)
    except (SchemaError, RecursionError, OverflowError):  # the last two by its patterns
        raise ValueError(f"it {leads_to_no_schema(reference)}") from None


def leads_to_no_schema(reference: object) -> str:
    """Return the end of a sentence about a schema whose reference leads to something else."""
    return f"refers to {str(reference)[:MAX_REFERENCE_LENGTH]}, which is not a JSON Schema"


def leads_out(error: Unresolvable) -> str:
    """Return the end of a sentence about a schema whose reference leads out of it."""
    return f"refers to {missing_reference(error)}, which is not part of it"


def missing_reference(error: Unresolvable) -> str:
    """Return the reference of an error as the schema writes it."""
    # The library leaves out the # before a path, and has a name apart from what is before its #.
    anchor = getattr(error, "anchor", None)
    if anchor is not None:
        return f"{error.ref}#{anchor}"
    return f"#{error.ref}" if error.ref.startswith("/") else error.ref
