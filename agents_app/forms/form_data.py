"""The type of the data that a form is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FormData = Mapping[str, Any]  # a QueryDict from a browser, a plain dict from code
