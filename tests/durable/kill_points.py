"""Points around a background task at which the process of a test kills itself, as `kill -9` would.

A test arms a point by a file. The process deletes the file before it kills itself, so that the next one gets past.
"""

import os
import signal
from functools import wraps
from importlib import import_module
from pathlib import Path

from tests.durable import agent_tools

BEFORE_ROW = "before the row"
BEFORE_JOB = "after the row, before the job"
IN_TOOL = "in the tool"
BEFORE_DELIVERY = "after the result, before the delivery"
IN_DELIVERY = "in the delivery"
AFTER_DELIVERY = "after the delivery"
# The function with a point before or after it, by the module that calls it.
PLACES = {
    BEFORE_ROW: ("runs_app.building.background_tools", "find_or_create_task", "before"),
    BEFORE_JOB: ("runs_app.background.dispatch", "fill_slots", "before"),
    IN_TOOL: ("tests.durable.agent_tools", "wait_for_gate", "before"),
    BEFORE_DELIVERY: ("runs_app.background.execution", "deliver_results", "before"),
    IN_DELIVERY: ("runs_app.background.delivery", "note_delivery", "before"),
    AFTER_DELIVERY: ("runs_app.background.execution", "deliver_results", "after"),
}


def path_of(point: str) -> Path:
    return agent_tools.folder() / f"kill {point}"


def arm(point: str) -> None:
    path_of(point).touch()


def kill_if_armed(point: str) -> None:
    if path_of(point).exists():
        path_of(point).unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def install() -> None:
    """Add the points to the functions of this process."""
    for point, (module_name, name, side) in PLACES.items():
        module = import_module(module_name)
        setattr(module, name, with_point(getattr(module, name), point, side))


def with_point(function, point, side):
    @wraps(function)
    def call(*args, **kwargs):
        if side == "before":
            kill_if_armed(point)
        result = function(*args, **kwargs)
        if side == "after":
            kill_if_armed(point)
        return result

    return call
