"""Parameters of headers, such as the boundary of a `Content-Type`."""

from __future__ import annotations

from typing import Any

from django.http import multipartparser
from django.utils.http import parse_header_parameters
from rest_framework.utils import mediatypes

# These modules treat a header as invalid only at a ValueError: those of the parts of a form, and `Accept`.
CALLERS: tuple[Any, ...] = (multipartparser, mediatypes)


def parse_parameters(header: str) -> tuple[str, dict[str, str]]:
    """Return the value of a header and its parameters. Raise ValueError if they are invalid.

    Python's parser of e-mail, which Django uses, raises a TypeError for a parameter that is given both in parts and
    as a whole (RFC 2231): `name*=a; name*0=b`.
    """
    try:
        return parse_header_parameters(header)
    except TypeError as error:
        raise ValueError("A parameter is given in parts and as a whole.") from error


def reject_invalid_parameters() -> None:
    """Let Django and DRF treat invalid parameters as an invalid header. Otherwise a caller would get a 500."""
    for module in CALLERS:
        module.parse_header_parameters = parse_parameters
