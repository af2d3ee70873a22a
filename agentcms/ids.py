"""Identifiers that sort by the time they were made."""

import secrets
import time
import uuid


def uuid7() -> uuid.UUID:
    """A version 7 UUID of RFC 9562: milliseconds, then random bits, so that new rows land at the end of an index."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | secrets.randbits(80)
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return uuid.UUID(int=value)


def parse_uuid(text: str) -> uuid.UUID | None:
    """An id as it is written on the wire, or None for anything else: `uuid.UUID` takes braces and the like too."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


def random_key() -> str:
    """A short random text that tells two rows apart which held one id after another."""
    return secrets.token_hex(6)
