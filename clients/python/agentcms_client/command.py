"""The command `python -m agentcms_client run_experiment`, which runs an experiment on a server, for CI."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import TextIO

import httpx

from agentcms_client.client import Client
from agentcms_client.json_types import JSONObject
from agentcms_client.outcomes import BarMissed, ExperimentFailed, ItemsFailed, Outcome
from agentcms_client.reports import json_report, junit_report
from agentcms_client.responses import ApiError

# The options by the path of their value in the body of the request.
OPTIONS = {
    "targetId": "--agent, --workflow or --scorer",
    "agentVersion": "--version",
    "scorerIds": "--scorers",
    "repeats": "--repeats",
    "seed": "--seed",
    "memory.thread": "--thread",
    "memory.resource": "--resource",
    "maxConcurrency": "--concurrency",
    "budget.maxCost": "--max-cost",
    "bars": "--fail-under",
}
BAR_HELP = "The lowest mean, or the highest one of a judge that is better the lower it scores, such as toxicity."
THREAD_HELP = "A thread that all items share, or per-item for a new one each. Some memories need a thread."
TARGETS = ("agent", "workflow", "scorer")
BUSY_STATUSES = (408, 425, 429)
BUSY_MESSAGE = (
    "The server refused the request with the status {status}, again and again. Run the command later, or ask for a "
    "higher limit for the key. An experiment that has begun goes on."
)
EXIT_CODES = (
    "Exit codes: 0 passed, 1 a bar is missed, 2 wrong use, 3 cancelled, out of time or budget spent, "
    "4 items failed to run or the server failed. Set AGENTCMS_URL and AGENTCMS_API_KEY (a key with the Editor role)."
)


class ExitCode(IntEnum):
    """The exit codes, equal to those of the command of the server."""

    PASSED = 0
    BAR_MISSED = 1
    WRONG_USE = 2
    STOPPED = 3
    ITEMS_FAILED = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = build_parser().parse_args(arguments)
    url, key = read_environment()
    if fault := environment_fault(url, key):
        return fail(fault, ExitCode.WRONG_USE)
    try:
        with Client(url, key, timeout=60) as client:
            return run_experiment(client, options)
    except ApiError as error:
        return fail_with(error)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        return fail(f"AGENTCMS_URL is not an address: {error}", ExitCode.WRONG_USE)
    except json.JSONDecodeError:
        return fail("AGENTCMS_URL is not the address of Agent CMS: its answer is not JSON.", ExitCode.WRONG_USE)
    except httpx.HTTPError as error:
        return fail(f"The server cannot be reached: {error}", ExitCode.ITEMS_FAILED)
    except OSError as error:
        return fail(f"A report cannot be written: {error}", ExitCode.ITEMS_FAILED)
    except KeyboardInterrupt:
        return fail("Cancelled.", ExitCode.STOPPED)
    except Exception:  # Python would exit with 1, which means that a bar is missed
        traceback.print_exc()
        return ExitCode.ITEMS_FAILED


def fail_with(error: ApiError) -> int:
    """Report the error of the server. Return the exit code: what the server refuses for now is not a wrong use."""
    issues = [f"{OPTIONS.get(issue['field'], issue['field'])}: {issue['message']}" for issue in error.issues]
    is_busy = error.status in BUSY_STATUSES
    advice = [BUSY_MESSAGE.format(status=error.status)] if is_busy else []
    code = ExitCode.WRONG_USE if error.status < 500 and not is_busy else ExitCode.ITEMS_FAILED
    return fail("\n".join([str(error), *issues, *advice]), code)


def read_environment() -> tuple[str, str]:
    """Return the address and the key of the environment variables, blank if they are not set."""
    # Secrets of CI often end with a line end.
    return os.environ.get("AGENTCMS_URL", "").strip(), os.environ.get("AGENTCMS_API_KEY", "").strip()


def environment_fault(url: str, key: str) -> str:
    """Return what is wrong with the values of the environment variables, or a blank text."""
    if not url or not key:
        return "Set AGENTCMS_URL and AGENTCMS_API_KEY."
    if not (key.isascii() and key.isprintable()):
        return "AGENTCMS_API_KEY has characters that no key has. Copy the key again."
    return ""


def run_experiment(client: Client, options: argparse.Namespace) -> int:
    """Run an experiment to its end, and report it. Return the exit code."""
    try:
        outcome = client.experiments.run(**run_options(options), on_progress=ProgressLine().show)
    except (BarMissed, ExperimentFailed) as error:
        if error.outcome is not None:
            report(error.outcome, options)
        return fail(str(error), exit_code(error))
    report(outcome, options)
    return ExitCode.PASSED


def exit_code(error: BarMissed | ExperimentFailed) -> ExitCode:
    """Return the exit code for an experiment that did not pass."""
    if isinstance(error, BarMissed):
        return ExitCode.BAR_MISSED
    if isinstance(error, ItemsFailed) or error.status == "failed":
        return ExitCode.ITEMS_FAILED
    return ExitCode.STOPPED


def run_options(options: argparse.Namespace) -> JSONObject:
    """Return the arguments of `experiments.run` for the options of the command."""
    kind = next(kind for kind in TARGETS if getattr(options, kind) is not None)
    keys = [key for part in (options.scorers or "").split(",") if (key := part.strip())]
    names = ("version", "not_worse_than", "margin", "max_cost", "timeout", "repeats", "seed")
    memory = {name: value for name in ("thread", "resource") if (value := getattr(options, name)) is not None}
    return {
        "dataset_id": options.dataset,
        "agent_id": getattr(options, kind),
        "targetType": kind,
        "scorers": keys or None,
        "fail_under": dict(options.fail_under),
        "maxConcurrency": options.concurrency,
        **{name: getattr(options, name) for name in names},
        **({"memory": memory} if memory else {}),
    }


def report(outcome: Outcome, options: argparse.Namespace) -> None:
    """Print the scores, and write the requested files."""
    failed = len(outcome.failed)
    write_line(f"{outcome.title}: {len(outcome.results) - failed} answered, {failed} failed.", sys.stdout)
    for key, figures in outcome.experiment["summary"].get("scorers", {}).items():
        if figures["mean"] is not None:
            write_line(f"{key}: {figures['mean']:.3f}", sys.stdout)
    if options.json:
        text = json.dumps(json_report(outcome), ensure_ascii=False, indent=2)
        options.json.write_text(f"{text}\n", encoding="utf-8")
    if options.junit:
        options.junit.write_text(junit_report(outcome), encoding="utf-8")


def fail(message: str, code: ExitCode) -> ExitCode:
    write_line(message, sys.stderr)
    return code


def write_line(text: str, stream: TextIO) -> None:
    """Print a line. If nobody reads it any more, or its disk is full, go on without: the exit code counts."""
    encoding = stream.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except OSError:
        # Python would try to write the rest at its end, and then exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class ProgressLine:
    """The progress of an experiment on the standard error: a line whenever it changes."""

    def __init__(self) -> None:
        self.last = ""

    def show(self, experiment: JSONObject) -> None:
        done = experiment["succeededCount"] + experiment["failedCount"]
        parts = [f"{done} of {experiment['totalItems']} done", f"{experiment['failedCount']} failed"]
        if cost := experiment["summary"].get("cost"):
            parts.append(f"${cost:.4f}")
        line = f"{experiment['targetId']} v{experiment['agentVersionNumber'] or '-'}: {', '.join(parts)}"
        if line != self.last:
            write_line(line, sys.stderr)
            self.last = line


def parse_bar(text: str) -> tuple[str, float]:
    """Return the scorer and the mean of SCORER=MEAN. Raise ArgumentTypeError."""
    key, separator, value = (part.strip() for part in text.rpartition("="))
    try:
        if not (key and separator):
            raise ValueError
        return key, finite(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"write SCORER=MEAN, such as exact=0.8, not '{text}'") from None


def finite(text: str) -> float:
    """Return a number. Raise ValueError for NaN too, with which every comparison fails, so that any score passes."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def positive(text: str) -> float:
    """Return a number above 0. Raise ValueError."""
    number = finite(text)
    if number <= 0:
        raise ValueError(text)
    return number


def writable_file(text: str) -> Path:
    """Return the path of a report. Raise ArgumentTypeError before the experiment, not after it."""
    path = Path(text)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"'{text}' cannot be written. Name a file in a folder that exists")
    return path


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m agentcms_client", description="Commands of Agent CMS.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "run_experiment", help="Run an experiment over a dataset and exit with 0 if it passes.", epilog=EXIT_CODES
    )
    command.add_argument("dataset", help="The ID of a dataset.")
    target = command.add_mutually_exclusive_group(required=True)
    target.add_argument("--agent", help="The ID of an agent.")
    target.add_argument("--workflow", help="The key of a workflow, in place of an agent.")
    target.add_argument("--scorer", help="The key of a scorer that is tested, in place of an agent.")
    add_options(command)
    return parser


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options, which have the names of those of the command of the server."""
    command.add_argument("--version", default="live", help="live, draft, or the number or ID of a version.")
    command.add_argument(
        "--scorers", help="Keys of scorers, separated by commas. By default those of each item or of the dataset."
    )
    command.add_argument("--repeats", type=int, default=1, help="How often each item runs.")
    command.add_argument("--seed", type=int, help="The seed that the model gets, plus 0, 1, 2 … for each repeat.")
    command.add_argument("--concurrency", type=int, default=4, help="How many items run at once.")
    command.add_argument("--thread", help=THREAD_HELP)
    command.add_argument("--resource", help="The resource whose memory the items use, such as an end user.")
    command.add_argument(
        "--fail-under", action="append", default=[], type=parse_bar, metavar="SCORER=MEAN", help=BAR_HELP
    )
    command.add_argument("--not-worse-than", metavar="VERSION", help="Compare with this version, such as live.")
    command.add_argument("--margin", type=finite, default=0.0, help="How much worse is allowed.")
    command.add_argument("--max-cost", type=finite, help="Stop above this many dollars.")
    command.add_argument("--timeout", type=positive, default=3600.0, help="Cancel after this many seconds.")
    command.add_argument("--json", type=writable_file, help="Write the results to this file.")
    command.add_argument("--junit", type=writable_file, help="Write a JUnit report to this file.")
