"""The merge of an update into a working memory with a JSON Schema."""

from __future__ import annotations


def merge_working_memory(stored: object, update: object) -> object:
    """Return a stored value with an update.

    Objects are merged deeply, a null removes a member, arrays and other values are replaced, and members that the
    update does not name stay.
    """
    if not isinstance(update, dict):
        return update
    merged = dict(stored) if isinstance(stored, dict) else {}
    for name, value in update.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_working_memory(merged.get(name), value)
    return merged
