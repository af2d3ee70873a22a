"""Models of conversations, their owners, and what agents remember."""

from memory_app.models.forgotten import Forgotten
from memory_app.models.message import Message
from memory_app.models.observation import Observation
from memory_app.models.resource import Resource
from memory_app.models.thread import Participant, Thread
from memory_app.models.vector import Vector
from memory_app.models.working_revision import WorkingRevision

__all__ = ["Forgotten", "Message", "Observation", "Participant", "Resource", "Thread", "Vector", "WorkingRevision"]
