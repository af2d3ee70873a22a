"""Registration of what workers do with conversations."""

from memory_app import cleanup  # noqa: F401  registers its expired rows
