"""Names for JSON objects. They come from outside of the application, so their members may have any type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSONObject = dict[str, Any]
JSONMapping = Mapping[str, Any]  # an object that is only read
