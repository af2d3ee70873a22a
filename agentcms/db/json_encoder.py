"""JSON as text columns of SQLite store it."""

import json


class CompactEncoder(json.JSONEncoder):
    """An encoder without spaces, for rows of which there are very many."""

    item_separator = ","
    key_separator = ":"
