"""The choice of a model in a session of an ACP agent.

Imports the ACP library, which is heavy. Import this module only where an agent is prompted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp import RequestError
from acp.client.connection import ClientSideConnection
from acp.schema import LoadSessionResponse, NewSessionResponse, SessionConfigOptionSelect, SessionConfigSelectGroup

from agentcms.wire.printable_text import printable
from tools_app.acp.cached_agents import AcpRecord
from tools_app.acp.errors import AcpError

CATEGORY = "model"
METHOD_NOT_FOUND = -32601
MAX_MODELS = 20  # of models in an error
MAX_MODEL_LENGTH = 100


async def choose_model(
    connection: ClientSideConnection,
    record: AcpRecord,
    session_id: str,
    session: NewSessionResponse | LoadSessionResponse | None,
) -> None:
    """Choose the model of the record in a session that was opened. Raise AcpError if the agent does not offer it."""
    option = model_option(session)
    if option is None:
        await choose_by_earlier_protocol(connection, record, session_id, session)
        return
    values = offered_values(option)
    if record.model not in values:
        names = ", ".join(printable(value[:MAX_MODEL_LENGTH]) for value in values[:MAX_MODELS])
        raise AcpError(
            f"The ACP agent '{record.title}' has no model '{record.model}'. Correct its record. It offers: {names}."
        )
    if option.current_value != record.model:
        await connection.set_config_option(option.id, session_id, record.model)


async def choose_by_earlier_protocol(
    connection: ClientSideConnection,
    record: AcpRecord,
    session_id: str,
    session: NewSessionResponse | LoadSessionResponse | None,
) -> None:
    """Choose a model by the method of earlier drafts of the protocol, which the library has no more."""
    try:
        parameters = {"sessionId": session_id, "modelId": record.model}
        await connection._conn.send_request("session/set_model", parameters)
    except RequestError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        if isinstance(session, NewSessionResponse):  # a loaded session has the model that was chosen at its start
            raise AcpError(
                f"The ACP agent '{record.title}' does not let clients choose a model. Leave the model of its record "
                "blank."
            ) from None


def model_option(session: NewSessionResponse | LoadSessionResponse | None) -> SessionConfigOptionSelect | None:
    """Return the option of a session that chooses its model."""
    options: Sequence[Any] = (session and session.config_options) or ()
    choices = [option for option in options if isinstance(option, SessionConfigOptionSelect)]
    by_category = (option for option in choices if option.category == CATEGORY)
    by_id = (option for option in choices if option.id == CATEGORY)  # agents need not say a category
    return next(by_category, None) or next(by_id, None)


def offered_values(option: SessionConfigOptionSelect) -> list[str]:
    """Return the values of an option, also of those in groups."""
    values: list[str] = []
    for item in option.options:
        values += (
            [inner.value for inner in item.options] if isinstance(item, SessionConfigSelectGroup) else [item.value]
        )
    return values
