"""A name for the context of a template."""

from __future__ import annotations

from typing import Any

TemplateContext = dict[str, Any]  # by the name of the variable, also of one row
