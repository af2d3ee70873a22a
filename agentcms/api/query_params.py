"""Strict parsing of query strings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Protocol
from urllib.parse import unquote_to_bytes

from agentcms.api.pagination import Paging
from agentcms.errors import BadRequest
from agentcms.wire.json_parser import InvalidJSON, parse_strict_json
from agentcms.wire.json_types import JSONObject
from agentcms.wire.names import join_paths, printable_key
from agentcms.wire.timestamps import parse_timestamp
from agentcms.wire.unknown_names import UnknownName, find_unknown_names
from agentcms.wire.validation import JSONFault, find_json_faults

MAX_PER_PAGE = 1000
MAX_NUMBER = 2**31 - 1  # the offset of this page still fits 64 bits
IGNORED_PARAMETERS = {"requestContext"}  # the client sends it with every request

REPEATED_MESSAGE = "Give this parameter once."
ONE_FORM_MESSAGE = "Give this parameter in one form, as brackets or as a text."

Direction = Literal["ASC", "DESC"]
_BRACKETS = re.compile(r"(?:\[[^\[\]]*\])+")


class HasMeta(Protocol):
    """A request of Django or DRF."""

    @property
    def META(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class OrderBy:
    """A sort order: the wire name of a field and a direction."""

    field: str
    direction: Direction = "DESC"

    def signed(self, column: str) -> str:
        """Return a column in this direction, as an argument of `order_by` of a query set."""
        return f"-{column}" if self.direction == "DESC" else column


class QueryParams:
    """The query parameters of a request.

    A context manager: `with QueryParams(request) as query: paging = query.paging(100)`. Each method reads one
    parameter; leaving the block raises BadRequest with all faults. A repeated parameter that is read is a fault.
    Parameters that are not read are ignored, unless a view calls `unknown_names()` or `check_unknown_names()`.
    """

    def __init__(self, request: HasMeta) -> None:
        self.faults: list[JSONFault] = []
        self.names_read: set[str] = set()
        self.objects_read: set[str] = set()  # those of names_read that may have keys in brackets
        self.without_effect: list[UnknownName] = []  # known parameters, and unknown parts of them
        self.values: dict[str, list[str]] = {}
        self.request_contexts: list[str] = []  # not validated; most views ignore them
        # request.GET would replace invalid UTF-8 silently.
        raw: bytes = request.META.get("QUERY_STRING", "").encode("latin-1", "replace")
        for pair in filter(None, raw.split(b"&")):
            self._add_pair(*pair.replace(b"+", b" ").partition(b"=")[::2])

    def __enter__(self) -> QueryParams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self.faults:
            # A parameter that is read twice, such as "strict", has its fault twice.
            raise BadRequest("query parameters", [*dict.fromkeys(self.faults)])

    def _add_pair(self, raw_name: bytes, raw_value: bytes) -> None:
        # A name that is not UTF-8 matches no parameter, and a response can quote it with its invalid bytes escaped.
        name = unquote_to_bytes(raw_name).decode("utf-8", "backslashreplace")
        if name in IGNORED_PARAMETERS:
            # Latin-1 decodes any bytes: a request must not fail because of a parameter that its view ignores.
            self.request_contexts.append(unquote_to_bytes(raw_value).decode("latin-1"))
            return
        try:
            value = unquote_to_bytes(raw_value).decode()
        except UnicodeDecodeError:
            self.add_fault(printable_key(name), "The value is not valid UTF-8.")
            return
        for fault in (*find_json_faults(name, printable_key(name)), *find_json_faults(value, printable_key(name))):
            self.add_fault(*fault)
        self.values.setdefault(name, []).append(value)

    def add_fault(self, field: str, message: str) -> None:
        """Add a fault; leaving the block raises it."""
        self.faults.append(JSONFault(field, message))

    def unknown_names(self, *others: str) -> list[UnknownName]:
        """Return the parameters that were not read so far and are not among the others, or that have no effect."""
        if not self.values:
            return []
        # One warning for metadata[a] and metadata[b]: the keys in brackets are data.
        plain_names = self.names_read - self.objects_read
        bases = {name: name.partition("[")[0] for name in self.values}
        names = dict.fromkeys(name if base in plain_names else base for name, base in bases.items())
        return [*find_unknown_names(names, {*self.names_read, *others}), *self.without_effect]

    def check_unknown_names(self, *unsupported: str) -> list[UnknownName]:
        """Return the parameters that were not read so far. With `strict=true` they are faults.

        `unsupported` are parameters that only strict requests refuse.
        """
        if not self.boolean("strict"):
            return self.unknown_names(*unsupported)
        for name in self.unknown_names():
            self.add_fault(name.field, name.message)
        return []

    def warn_unused(self, name: str, message: str) -> None:
        """Report a parameter, if the request has it, as an unknown name is reported: it has no effect here."""
        if name in self.values:
            self.without_effect.append(UnknownName(name, name, message))

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the parameter unchanged, or the default where it is absent."""
        self.names_read.add(name)
        values = self.values.get(name)
        if not values:
            return default
        if len(values) > 1:
            self.add_fault(name, REPEATED_MESSAGE)
        return values[-1]

    def integer(self, name: str, default: int, minimum: int = 0, maximum: int = MAX_NUMBER) -> int:
        """Return a whole number within bounds, written in plain digits."""
        text = self.text(name)
        if text is None:
            return default
        # The pattern limits the length: Python is slow to convert thousands of digits.
        if re.fullmatch(r"[0-9]{1,10}", text) and minimum <= int(text) <= maximum:
            return int(text)
        self.add_fault(name, f"Give a whole number from {minimum} to {maximum}.")
        return default

    def boolean(self, name: str, default: bool = False) -> bool:
        """Return True or False for `true` or `false`."""
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return the parameter if it is one of the choices."""
        text = self.text(name, default)
        if text in choices:
            return str(text)
        self.add_fault(name, f"Give one of {', '.join(choices)}.")
        return default

    def timestamp(self, name: str) -> datetime | None:
        """Return an ISO 8601 time, or None where it is absent."""
        text = self.text(name)
        try:
            return None if text is None else parse_timestamp(text)
        except ValueError as error:
            self.add_fault(name, str(error))
            return None

    def paging(self, per_page: int) -> Paging:
        """Return the page: `page` from 0 and `perPage` from 1 to 1000. `per_page` is the default of the route."""
        return Paging(self.integer("page", 0), self.integer("perPage", per_page, 1, MAX_PER_PAGE))

    def order_by(self, fields: Sequence[str], default: OrderBy) -> OrderBy:
        """Return the order of `orderBy`, written with brackets, as JSON text, or plain with `sortDirection`."""
        parts = self._order_by_parts()
        self.without_effect += find_unknown_names(parts, ("field", "direction"), "orderBy")
        flat_direction = self.text("sortDirection", default.direction)
        field = parts.get("field", default.field)
        direction = parts.get("direction", flat_direction)
        if field not in fields:
            self.add_fault("orderBy.field", f"Give one of {', '.join(fields)}.")
            return default
        if direction not in ("ASC", "DESC"):
            self.add_fault("orderBy.direction" if "direction" in parts else "sortDirection", "Give one of ASC, DESC.")
            return default
        return OrderBy(field, direction)

    def _order_by_parts(self) -> JSONObject:
        """Return `field` and `direction` from any of the three forms of `orderBy`, not validated."""
        # The published client sends brackets or JSON; earlier releases of it send the plain form.
        text = self.values.get("orderBy", [""])[-1]
        if "orderBy" in self.values and not text.lstrip().startswith("{"):
            if any(name.startswith("orderBy[") for name in self.values):
                self.add_fault("orderBy", ONE_FORM_MESSAGE)
            return {"field": self.text("orderBy")}
        return self.json_object("orderBy") or {}

    def json_object(self, name: str) -> JSONObject | None:
        """Return an object written with brackets, `name[a][b]=text`, or as JSON text; None where it is absent."""
        brackets = [(key, texts) for key, texts in self.values.items() if key.startswith(f"{name}[")]
        self.objects_read.add(name)
        text = self.text(name)
        if text is None:
            return self._from_brackets(name, brackets) if brackets else None
        if brackets:
            self.add_fault(name, ONE_FORM_MESSAGE)
        return self._from_text(name, text)

    def _from_text(self, name: str, text: str) -> JSONObject:
        try:
            value = parse_strict_json(text.encode())
        except InvalidJSON as error:
            for field, message in error.faults:
                self.add_fault(join_paths(name, field), message)
            return {}
        if isinstance(value, dict):
            return value
        self.add_fault(name, "Give a JSON object.")
        return {}

    def _from_brackets(self, name: str, brackets: Iterable[tuple[str, list[str]]]) -> JSONObject:
        result: JSONObject = {}
        for key, texts in brackets:
            if not _BRACKETS.fullmatch(key, len(name)):
                self.add_fault(printable_key(key), f"Write brackets as {name}[key] or {name}[key][key].")
            elif len(texts) > 1 or not _insert_at_path(result, key[len(name) + 1 : -1].split("]["), texts[0]):
                self.add_fault(printable_key(key), REPEATED_MESSAGE)
        for fault in find_json_faults(result, name):
            self.add_fault(*fault)
        return result


def _insert_at_path(tree: JSONObject, keys: list[str], text: str) -> bool:
    """Set the text at its path. Return False if the path has another value already."""
    *parents, last = keys
    for key in parents:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            return False
    return tree.setdefault(last, text) is text
