"""Names for JSON values, whose members may have any type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSONValue = Any  # whatever a JSON text can say
JSONObject = dict[str, JSONValue]
JSONMapping = Mapping[str, JSONValue]  # an object that is only read
