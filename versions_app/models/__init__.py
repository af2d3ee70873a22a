"""The models of a history: versions, activations, retention rules and deleted agents."""

from versions_app.models.activation import Activation, CannotUndo
from versions_app.models.deleted_agent import DeletedAgent
from versions_app.models.retention_rule import RetentionRule
from versions_app.models.version import AgentVersion

__all__ = ["Activation", "AgentVersion", "CannotUndo", "DeletedAgent", "RetentionRule"]
