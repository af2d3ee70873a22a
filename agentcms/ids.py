"""Identifiers."""

import secrets
import time
import uuid


def uuid7() -> uuid.UUID:
    """Return a version 7 UUID of RFC 9562. It begins with the time, so new rows are added at the end of an index."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | secrets.randbits(80)
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return uuid.UUID(int=value)


def parse_uuid(text: str) -> uuid.UUID | None:
    """Return a UUID written in its standard form, or None for anything else."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text.lower() else None  # `uuid.UUID` accepts braces and other forms too


def random_key() -> str:
    """Return a short random text. It tells two rows apart that have the same id one after the other."""
    return secrets.token_hex(6)
