"""Models of conversations."""

from memory_app.models.message import Message
from memory_app.models.thread import Thread

__all__ = ["Message", "Thread"]
