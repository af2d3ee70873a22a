"""The command that runs an experiment in the foreground, for CI. It needs no broker."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from agentcms.errors import ApiError
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import ConfigError
from evals_app.experiments.creation import save_experiment
from evals_app.experiments.estimate import find_unlimited_cost
from evals_app.experiments.jobs import is_outage
from evals_app.experiments.options import parse_experiment
from evals_app.experiments.running.foreground import create_command_job, run_to_end
from evals_app.experiments.running.interruptions import interrupted_by_signals
from evals_app.models import Dataset, Experiment
from evals_app.reports.bars import ExitCode, exit_code, missed_bars, worse_scorers
from evals_app.reports.files import json_report, junit_report
from jobs_app.models import Job

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = logging.getLogger(__name__)

BASELINE_MESSAGE = (
    "The experiment of '{version}', with which this one is compared, did not end: {reason} It is not known whether "
    "this version is worse. Run the command again, with a larger --max-cost if the budget was spent."
)
OUTAGE_MESSAGE = (
    "The database, Valkey or the broker did not respond for too long, so the experiment did not end. Results stay. "
    "Run the command again once they respond."
)
BAR_HELP = "The lowest mean, or the highest one of a judge that is better the lower it scores, such as toxicity."
THREAD_HELP = "A thread that all items share, or per-item for a new one each. Some memories need a thread."
TARGETS = ("agent", "workflow", "scorer")
# The options by the path of their value in the body of a request.
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


class Command(BaseCommand):
    """Exit codes: 0 passed, 1 a bar is missed, 2 wrong use, 3 cancelled or budget spent, 4 items failed to run."""

    help = "Run an experiment over a dataset and exit with 0 if it passes."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Django's own --version gives way to that of the agent.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dataset", help="The ID of a dataset.")
        add_target(parser)
        parser.add_argument(
            *("--version", "--agent-version"),
            dest="version_of_target",
            default="live",
            help="A number, live or draft; of scorers too.",
        )
        parser.add_argument("--user", help="Who runs it. By default the first superuser.")
        parser.add_argument(
            "--scorers", help="Keys of scorers, separated by commas. By default those of each item or of the dataset."
        )
        parser.add_argument("--repeats", type=int, default=1, help="How often each item runs.")
        parser.add_argument("--seed", type=int, help="The seed that the model gets, plus 0, 1, 2 … for each repeat.")
        parser.add_argument("--concurrency", type=int, default=4, help="How many items run at once.")
        parser.add_argument("--thread", help=THREAD_HELP)
        parser.add_argument("--resource", help="The resource whose memory the items use, such as an end user.")
        parser.add_argument("--fail-under", action="append", default=[], metavar="SCORER=MEAN", help=BAR_HELP)
        parser.add_argument("--not-worse-than", metavar="VERSION", help="Compare with this version, such as live.")
        parser.add_argument("--margin", type=float, default=0.0, help="How much worse is allowed.")
        parser.add_argument("--max-cost", type=float, help="Stop above this many dollars.")
        parser.add_argument("--json", type=Path, help="Write the results to this file.")
        parser.add_argument("--junit", type=Path, help="Write a JUnit report to this file.")

    def handle(self, *args: object, **options: Any) -> None:
        reject_unusable(options)
        bars = dict(map(parse_bar, options["fail_under"]))
        experiment = self.run(options, options["version_of_target"], bars)
        missed = missed_bars(experiment, bars)
        baseline = None
        if options["not_worse_than"] and experiment.status == Experiment.Status.COMPLETED:
            baseline = self.run(options, options["not_worse_than"])
            missed += self.compare(experiment, baseline, options)
        self.report(experiment, missed, options)
        code = exit_code(experiment, missed)
        if code == ExitCode.PASSED and baseline is not None and baseline.status != Experiment.Status.COMPLETED:
            # The experiment passes its own bars, but without a baseline it may be worse.
            code = exit_code(baseline, [])
        if code != ExitCode.PASSED:
            sys.exit(code)

    def compare(self, experiment: Experiment, baseline: Experiment, options: JSONObject) -> list[str]:
        """Return a sentence for each scorer that is worse than the baseline. Say if the baseline has no scores."""
        if baseline.status == Experiment.Status.COMPLETED:
            return worse_scorers(experiment, baseline, options["margin"])
        reason = baseline.stop_reason or baseline.error
        self.stderr.write(BASELINE_MESSAGE.format(version=options["not_worse_than"], reason=reason))
        return []

    def run(self, options: JSONObject, version: str, bars: dict[str, float] | None = None) -> Experiment:
        """Run an experiment to its end. Raise CommandError, which exits with 2, for what is unknown."""
        dataset = Dataset.objects.filter(pk=options["dataset"]).first()
        if dataset is None:
            raise CommandError(f"Dataset with id {options['dataset']} not found.", returncode=ExitCode.WRONG_USE)
        body = {**request_body(options, version), "bars": bars}
        try:
            # Together: if the command was killed in between, nothing would ever end the experiment.
            with transaction.atomic():
                user = find_user(options["user"])
                experiment = save_experiment(dataset, parse_experiment(body), user)
                job = create_command_job(experiment)
        except (ApiError, ValidationError, PermissionDenied) as error:
            raise CommandError(describe_error(error), returncode=ExitCode.WRONG_USE) from None
        if unlimited := find_unlimited_cost(experiment, user):
            self.stderr.write(unlimited)
        self.work(experiment, job)
        experiment.refresh_from_db()
        return experiment

    def work(self, experiment: Experiment, job: Job) -> None:
        """Run a stored experiment to its end. Raise CommandError after an outage."""
        try:
            with interrupted_by_signals():
                run_to_end(experiment, job)
        except KeyboardInterrupt:
            pass  # the experiment is cancelled, which the exit code says
        except Exception as error:  # the experiment has failed; the exit code of an exception would mean a missed bar
            log.exception("The experiment stopped after an unexpected error.")
            if is_outage(error):
                raise CommandError(OUTAGE_MESSAGE, returncode=ExitCode.ITEMS_FAILED) from error

    def report(self, experiment: Experiment, missed: list[str], options: JSONObject) -> None:
        """Print the scores, and write the files that were asked for."""
        counts = f"{experiment.succeeded_count} answered, {experiment.failed_count} failed."
        self.stdout.write(f"{experiment.title}: {counts}")
        for key, figures in experiment.summary.get("scorers", {}).items():
            if figures["mean"] is not None:
                self.stdout.write(f"{key}: {figures['mean']:.3f}")
        for text in [*missed, experiment.stop_reason, experiment.error]:
            if text:
                self.stderr.write(text)
        if options["json"]:
            report = json.dumps(json_report(experiment, missed), ensure_ascii=False, indent=2, default=str)
            options["json"].write_text(f"{report}\n", encoding="utf-8")
        if options["junit"]:
            options["junit"].write_text(junit_report(experiment, missed), encoding="utf-8")


def add_target(parser: CommandParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--agent", help="The ID of an agent.")
    target.add_argument("--workflow", help="The key of a workflow, in place of an agent.")
    target.add_argument("--scorer", help="The key of a scorer that is tested, in place of an agent.")


def request_body(options: JSONObject, version: str) -> JSONObject:
    """Return the body of a request that creates the same experiment."""
    kind = next(kind for kind in TARGETS if options[kind] is not None)
    keys = [key for part in (options["scorers"] or "").split(",") if (key := part.strip())]
    body: JSONObject = {
        "targetType": kind,
        "targetId": options[kind],
        "agentVersion": version,
        "repeats": options["repeats"],
        "seed": options["seed"],
        "maxConcurrency": options["concurrency"],
    }
    body |= {"scorerIds": keys} if keys else {}
    memory = {name: options[name] for name in ("thread", "resource") if options[name] is not None}
    body |= {"memory": memory} if memory else {}
    return body | ({"budget": {"maxCost": options["max_cost"]}} if options["max_cost"] is not None else {})


def describe_error(error: Exception) -> str:
    """Return what is wrong with the options, each error with the option that it is about."""
    if not isinstance(error, ConfigError):
        return " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
    return " ".join(f"{OPTIONS.get(issue.field, issue.field)}: {issue.message}" for issue in error.issues)


def reject_unusable(options: JSONObject) -> None:
    """Raise CommandError for NaN, which no score is below, and for reports that could not be written at the end."""
    for name in ("margin", "max_cost"):
        if options[name] is not None and not math.isfinite(options[name]):
            message = f"--{name.replace('_', '-')} must be a number, not '{options[name]}'."
            raise CommandError(message, returncode=ExitCode.WRONG_USE)
    for name in ("json", "junit"):
        path = options[name]
        if path and (path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)):
            message = f"--{name}: '{path}' cannot be written. Name a file in a folder that exists."
            raise CommandError(message, returncode=ExitCode.WRONG_USE)


def parse_bar(text: str) -> tuple[str, float]:
    """Return the scorer and the mean of SCORER=MEAN. Raise CommandError."""
    key, separator, value = (part.strip() for part in text.rpartition("="))
    try:
        if not (key and separator and math.isfinite(float(value))):
            raise ValueError
        return key, float(value)
    except ValueError:
        message = f"Write --fail-under as SCORER=MEAN, such as exact=0.8, not '{text}'."
        raise CommandError(message, returncode=ExitCode.WRONG_USE) from None


def find_user(username: str | None) -> User:
    """Return the user who runs the experiment. Raise CommandError."""
    users = get_user_model().objects.filter(is_active=True)
    matching = users.filter(username=username) if username else users.filter(is_superuser=True)
    user = matching.order_by("pk").first()
    if user is None:
        message = f"There is no user '{username}'." if username else "There is no superuser. Name a user with --user."
        raise CommandError(message, returncode=ExitCode.WRONG_USE)
    return user
