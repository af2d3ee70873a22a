"""The background tasks of an agent in the editor: a choice for all tools, and a row for each tool.

The names of the inputs:

    background_tasks           sent by every page that has the rows; one of MODES
    background-key             the key of each row
    background-use-<key>       one of USES
    background-timeout-<key>   seconds, or blank
    background-retries-<key>   a number, or blank
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError

from agentcms.wire.json_types import JSONMapping, JSONObject, JSONValue
from agents_app.configuration.background_tasks import AWAITED, DEFERRED, EVERY_TOOL, FOREGROUND
from agents_app.forms.form_data import FormData
from agents_app.forms.objects.field import get_submitted_list
from agents_app.forms.objects.members import InputError, path_error, texts_by_target

BACKGROUND_MODES = [("", "The tools below"), (EVERY_TOOL, "Every tool"), ("disabled", "No tool")]
USES = [
    ("", "As the tool says"),
    (DEFERRED, "In the background"),
    (AWAITED, "In the background; the run waits"),
    (FOREGROUND, "If the model asks for it"),
    ("never", "Never"),
]
MAX_TASK_ROWS = 100  # each has four inputs, and the number of fields of a form is limited
INPUTS = ("enabled", "disposition", "timeoutMs", "maxRetries")  # the members of a choice that a row has inputs for
WHOLE_NUMBER = re.compile(r"[0-9]{1,8}")
DECIMAL_NUMBER = re.compile(r"[0-9]{1,8}(\.[0-9]{1,3})?")
INVALID_TIMEOUT_MESSAGE = "The seconds of {key} are not a number. Use a number such as 600, or leave the input blank."
RETRIES_MESSAGE = "The retries of {key} are not a whole number. Use a number such as 2, or leave the input blank."


@dataclass(frozen=True)
class TaskToolRow:
    """A tool with its choice."""

    key: str
    use: str
    timeout: str  # in seconds
    retries: str
    timeout_error: str = field(default="", compare=False)
    retries_error: str = field(default="", compare=False)

    @property
    def is_set(self) -> bool:
        return bool(self.use)


def mode_for_all(value: object) -> str:
    """Return the choice for all tools of a configured value."""
    if not isinstance(value, dict):
        return ""
    if value.get("disabled") is True:
        return "disabled"
    return EVERY_TOOL if value.get("tools") == EVERY_TOOL else ""


def background_tool_rows(
    value: object, keys: Iterable[str], data: FormData, errors: list[ValidationError]
) -> list[TaskToolRow]:
    """Return a row for each tool of an agent, and for each that a configured value names.

    Rows that `data` sent have its texts and the errors. Of more than MAX_TASK_ROWS, these come first, and then those
    with a choice: a page only shows the first ones.
    """
    texts = texts_by_target(errors)
    sent = {key: sent_row(data, key, texts) for key in get_submitted_list(data, "background-key")}
    tools = value.get("tools") if isinstance(value, dict) else None
    choices: JSONMapping = tools if isinstance(tools, dict) else {}
    rows = [sent.get(key) or task_tool_row(key, choices.get(key)) for key in dict.fromkeys([*keys, *choices])]
    if len(rows) > MAX_TASK_ROWS:
        rows.sort(key=lambda row: (row.key not in sent, not row.is_set))
    return rows


def sent_row(data: FormData, key: str, error_texts: Mapping[str, str]) -> TaskToolRow:
    use, timeout, retries = (f"background-{part}-{key}" for part in ("use", "timeout", "retries"))
    return TaskToolRow(
        key,
        data.get(use, ""),
        data.get(timeout, ""),
        data.get(retries, ""),
        error_texts.get(f"{timeout}:0", ""),
        error_texts.get(f"{retries}:0", ""),
    )


def task_tool_row(key: str, choice: JSONValue) -> TaskToolRow:
    if isinstance(choice, dict):
        enabled = choice.get("enabled")
        use = "never" if enabled is False else str(choice.get("disposition") or DEFERRED) if enabled else ""
        milliseconds = choice.get("timeoutMs")
        # With all digits: a change of another input of the row writes this one too.
        timeout = "" if milliseconds is None else f"{milliseconds / 1000:.3f}".rstrip("0").rstrip(".")
        retries = choice.get("maxRetries")
        return TaskToolRow(key, use, timeout, "" if retries is None else str(retries))
    return TaskToolRow(key, {True: DEFERRED, False: "never"}.get(choice, ""), "", "")


def compose_background(data: FormData, base: JSONValue) -> tuple[JSONObject | None, list[InputError]]:
    """Return the value that a page sent, with the stored members that have no input, and the errors."""
    stored: JSONObject = base if isinstance(base, dict) else {}
    tools = stored.get("tools")
    choices: JSONObject = dict(tools) if isinstance(tools, dict) else {}
    errors: list[InputError] = []
    for key in get_submitted_list(data, "background-key"):
        choice = compose_use(data, key, choices.get(key), errors)
        choices.pop(key, None)
        if choice is not None:
            choices[key] = choice
    mode = data.get("background_tasks")
    # What nobody changed stays: a stored value has several ways to say the same, such as null and an empty object.
    if mode == mode_for_all(base) and (tools == EVERY_TOOL or choices == (tools or {})):
        return base, errors
    value = {name: item for name, item in stored.items() if name not in ("disabled", "tools")}
    if mode == "disabled":
        value["disabled"] = True
    # Kept while all are disabled, so that it counts again afterwards.
    if mode == EVERY_TOOL or (mode == "disabled" and tools == EVERY_TOOL):
        value["tools"] = EVERY_TOOL
    elif choices:
        value["tools"] = choices
    return value or None, errors


def background_error(path: str, message: str, data: FormData) -> ValidationError:
    """Return the error for an issue at a path of the field: that of an input if the page sent one for the path."""
    for key in get_submitted_list(data, "background-key"):
        for member, part, label in (("timeoutMs", "timeout", "Seconds"), ("maxRetries", "retries", "Retries")):
            if path == f"tools.{key}.{member}":
                return InputError(f"{label} of {key}: {message}", f"background-{part}-{key}:0", message)
    return path_error(path, message)


def compose_use(data: FormData, key: str, before: object, errors: list[InputError]) -> object:
    """Return the choice of a row, unchanged if nobody changed it, or None for that of the tool."""
    sent = sent_row(data, key, {})
    use = sent.use
    if sent == task_tool_row(key, before):
        return before
    if use not in (DEFERRED, AWAITED, FOREGROUND):
        return False if use == "never" else None
    choice = {name: item for name, item in before.items() if name not in INPUTS} if isinstance(before, dict) else {}
    choice["enabled"] = True
    if use != DEFERRED:
        choice["disposition"] = use
    if sent.timeout:
        error = InputError(INVALID_TIMEOUT_MESSAGE.format(key=key), f"background-timeout-{key}:0")
        add_number(choice, "timeoutMs", sent.timeout, 1000, error, errors)
    if sent.retries:
        error = InputError(RETRIES_MESSAGE.format(key=key), f"background-retries-{key}:0")
        add_number(choice, "maxRetries", sent.retries, 1, error, errors)
    return choice


def add_number(
    choice: JSONObject, member: str, text: str, factor: int, error: InputError, errors: list[InputError]
) -> None:
    """Add a typed number to a choice, or the error to the errors if it is none."""
    pattern = WHOLE_NUMBER if factor == 1 else DECIMAL_NUMBER
    if pattern.fullmatch(text):
        choice[member] = round(float(text) * factor)  # 1.001 times 1000 is a little less than 1001
    else:
        errors.append(error)
