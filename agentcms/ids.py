"""UUIDs, numbers in URLs, and unused names."""

import hashlib
import secrets
import time
import uuid
from collections.abc import Collection


def uuid7() -> uuid.UUID:
    """Return a version 7 UUID of RFC 9562. It begins with the time, so new rows are added at the end of an index."""
    milliseconds = time.time_ns() // 1_000_000
    return with_version((milliseconds << 80) | secrets.randbits(80), 7)


def derive_uuid(parent: uuid.UUID, name: str) -> uuid.UUID:
    """Return a version 8 UUID that depends on its arguments alone. It begins with the time of `parent`, as `uuid7`."""
    digest = hashlib.sha256(parent.bytes + name.encode()).digest()
    return with_version(int.from_bytes(parent.bytes[:6] + digest[:10]), 8)


def with_version(value: int, version: int) -> uuid.UUID:
    """Return the UUID with the bits of its version and of its variant set."""
    # RFC 9562 has the version in bits 48 to 51 and the variant, 10, in bits 64 and 65, counted from the left.
    value = value & ~(0xF << 76) | (version << 76)
    return uuid.UUID(int=value & ~(0x3 << 62) | (0x2 << 62))


def parse_uuid(text: str) -> uuid.UUID | None:
    """Return a UUID written in its standard form, or None for anything else."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text.lower() else None  # `uuid.UUID` accepts braces and other forms too


def parse_whole_number(text: str) -> int:
    """Return the whole number of a text in a URL, such as a version number, or 0 for any other text."""
    # Ten digits may exceed what a column of the database holds, and the query would fail.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def random_key() -> str:
    """Return a short random text. It tells two rows apart that have the same id one after the other."""
    return secrets.token_hex(6)


def first_unused(stem: str, used: Collection[str]) -> str:
    """Return the stem, or the stem with the first number that makes it unused."""
    # The stem and these are more candidates than there are used names, so one of them is free.
    numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
    return next(candidate for candidate in (stem, *numbered) if candidate not in used)
