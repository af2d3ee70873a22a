"""URLs of the API of evaluations."""

from typing import Any

urlpatterns: list[Any] = []
