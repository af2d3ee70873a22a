"""Numbers with their nouns, as in "1 item" and "1,200 items"."""


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun, which takes an s if the number is not 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
