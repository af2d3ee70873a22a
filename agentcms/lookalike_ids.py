"""Letters by which an ID looks like another one."""

import unicodedata
from collections import Counter
from itertools import zip_longest

LATIN = "LATIN"
LOOKALIKE_SCRIPTS = ("CYRILLIC", "GREEK")  # many of their letters look like Latin ones


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
    """Return the normal form of an ID, or the default if it would look like another one or is not an ID."""
    normal = unicodedata.normalize("NFKC", agent_id)
    # NFKC turns some characters into several, such as ℀ into a/c. A slash would end the ID in a URL.
    return default if describe_ambiguity(normal) or "/" in normal or not normal.isprintable() else normal
