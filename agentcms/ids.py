"""Identifiers and numbers of versions."""

import hashlib
import secrets
import time
import unicodedata
import uuid
from collections import Counter
from collections.abc import Collection
from itertools import zip_longest

LATIN = "LATIN"
LOOKALIKE_SCRIPTS = ("CYRILLIC", "GREEK")  # many of their letters look like Latin ones


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


def describe_ambiguity(text: str) -> str:
    """Return why an ID looks like another one, or a blank text.

    Such an ID differs from its Unicode normal form NFKC, or mixes Latin with Cyrillic or Greek letters.
    """
    if (normal := unicodedata.normalize("NFKC", text)) != text:
        # With a fill value, because the normal form may be longer or shorter than the text.
        place = next(place for place, (one, other) in enumerate(zip_longest(text, normal), 1) if one != other)
        return f"Character {place} is not in the Unicode normal form NFKC. Write '{normal}' instead."
    scripts = [letter_script(character) for character in text]
    counts = Counter(filter(None, scripts))
    if LATIN not in counts or len(counts) == 1:
        return ""
    # With equally many letters of two scripts, those that look like Latin letters are reported.
    rarest = min(counts, key=lambda script: (counts[script], script == LATIN))
    place = scripts.index(rarest)
    name = unicodedata.name(text[place]).lower()
    others = " and ".join(sorted(script.title() for script in counts if script != rarest))
    return f"Character {place + 1}, '{text[place]}' ({name}), is among {others} letters. Use letters of one script."


def letter_script(character: str) -> str:
    """Return the script of a letter or mark if it is Latin, Cyrillic or Greek, else a blank text."""
    if unicodedata.category(character)[0] not in "LM":
        return ""
    words = unicodedata.name(character, "").split()
    return next((script for script in (LATIN, *LOOKALIKE_SCRIPTS) if script in words), "")


def derive_clear_id(agent_id: str, default: str) -> str:
    """Return the normal form of an ID, or the default if it would look like another one or is no ID."""
    normal = unicodedata.normalize("NFKC", agent_id)
    # NFKC turns some characters into several, such as ℀ into a/c. A slash would end the ID in a URL.
    return default if describe_ambiguity(normal) or "/" in normal or not normal.isprintable() else normal


def first_unused(stem: str, used: Collection[str]) -> str:
    """Return the stem, or the stem with the first number that makes it unused."""
    # The stem and these are more candidates than there are used names, so one of them is free.
    numbered = (f"{stem}-{number}" for number in range(2, len(used) + 3))
    return next(candidate for candidate in (stem, *numbered) if candidate not in used)
