"""The cost of evaluations: experiments, comparisons and their pages, and tracing.

    python -m benchmarks.evaluations [--items 2000] [--exported 20000] [--json]

Everything happens in processes of this program, on a temporary SQLite or on DATABASE_URL. The model answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.evaluation_rows import (
    JUDGE_DELAY,
    JUDGES,
    create_dataset,
    create_judges,
    create_rows,
    run_experiment,
    start_experiment,
    store_experiment,
    store_results,
)

Figures = dict[str, float]

ROUNDS = 7
EXPERIMENTS = 100
COMPARED = 2000
LAST_ITEMS = 200  # of the most items, which an experiment runs whose other results are stored
STEPS = ("setup", "experiment", "judges", "memory", "last", "pages", "tracing")


def prepare(stack: ExitStack) -> None:
    """Choose an empty database and a cache for all processes."""
    from agentcms.server.valkey import running_valkey

    folder = Path(tempfile.mkdtemp(prefix="agentcms-evaluations-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    os.environ |= {"DATA_DIR": str(folder), "RUN_ENGINE": "process", "LOG_LEVEL": "error", "API_THROTTLE": "off"}
    os.environ |= {"EXPERIMENT_RUNS": "100", "DJANGO_SETTINGS_MODULE": "agentcms.settings"}
    os.environ["REDIS_URL"] = stack.enter_context(running_valkey(folder / "valkey", os.environ))


def milliseconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    action()
    return (clock() - started) * 1000


def least_ms(action: Callable[[], object]) -> float:
    """Return the least of several durations: other programs can only add to it. One before loads what is needed."""
    action()
    return min(milliseconds(action) for _ in range(ROUNDS))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- Steps, each in a process of its own


def setup(options: argparse.Namespace) -> Figures:
    from django.core.management import call_command

    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    create_rows()
    return {}


def experiment(options: argparse.Namespace) -> Figures:
    """Measure an experiment over 200 items, whose answers are scored, in this process."""
    user, agent = create_rows()
    run_experiment(create_dataset("warm", 10), user, agent)
    dataset = create_dataset("two-hundred", 200)
    cpu, started = time.process_time(), time.perf_counter()
    done = run_experiment(dataset, user, agent)
    seconds = time.perf_counter() - started
    assert done.succeeded_count == 200
    return {
        "CPU of 200 items, concurrency 10 (goal 12), s": time.process_time() - cpu,
        "items a second with an instant model": 200 / seconds,
        "peak memory after 200 items, MB": peak_mb(),
    }


def judges(options: argparse.Namespace) -> Figures:
    """Measure an experiment over 200 items whose answers several judges score, each after a delay."""
    user, agent = create_rows()
    keys = create_judges()
    run_experiment(create_dataset("warm-judged", 10), user, agent, scorerIds=keys)
    dataset = create_dataset("judged", 200)
    started = time.perf_counter()
    done = run_experiment(dataset, user, agent, scorerIds=keys)
    seconds = time.perf_counter() - started
    counts = [figures["count"] for figures in done.summary["scorers"].values()]
    assert counts == [200] * JUDGES, done.summary
    return {f"items a second with {JUDGES} judges of {JUDGE_DELAY * 1000:.0f} ms, concurrency 10": 200 / seconds}


def memory(options: argparse.Namespace) -> Figures:
    """Measure the peak memory of an experiment over many items, and that of an export of the most items.

    Store the results of most of these, so that the next step has the last ones to run.
    """
    from evals_app.models import Dataset

    user, agent = create_rows()
    run_experiment(create_dataset("small", 200), user, agent)
    before = peak_mb()
    run_experiment(create_dataset("large", options.items), user, agent)
    figures = {f"peak memory that {options.items:,} items add to 200 (goal 50), MB": peak_mb() - before}
    figures |= memory_of_export(options.exported)
    store_results(start_experiment(Dataset.objects.get(pk="most"), user, agent), options.exported - LAST_ITEMS)
    return figures


def memory_of_export(count: int) -> Figures:
    from evals_app.exchange.formats import FileFormat
    from evals_app.exchange.writing import export_items

    dataset = create_dataset("most", count)
    before, started = peak_mb(), time.perf_counter()
    size = sum(map(len, export_items(dataset, dataset.version, FileFormat.JSONL)))
    return {
        f"export of {count:,} items, s": time.perf_counter() - started,
        f"export of {count:,} items, MB written": size / 1024 / 1024,
        f"peak memory that an export of {count:,} items adds, MB": peak_mb() - before,
    }


def last(options: argparse.Namespace) -> Figures:
    """Measure the peak memory of the last items of an experiment over the most items, with its figures of all."""
    from evals_app.experiments.running.foreground import create_command_job, run_to_end
    from evals_app.models import Experiment

    user, agent = create_rows()
    run_experiment(create_dataset("warm-last", 10), user, agent)
    experiment = Experiment.objects.get(dataset="most")
    before = peak_mb()
    run_to_end(experiment, create_command_job(experiment))
    count = Experiment.objects.get(pk=experiment.pk).succeeded_count
    assert count == experiment.total_items
    return {f"peak memory that the last {LAST_ITEMS} of {count:,} items add, MB": peak_mb() - before}


def pages(options: argparse.Namespace) -> Figures:
    """Measure a comparison from its kept row, and pages with many experiments."""
    from evals_app.compare.jobs import compute_now

    user, agent = create_rows()
    dataset = create_dataset("compared", COMPARED)
    pair = [store_experiment(dataset, agent, user, shift) for shift in (0.0, 0.1)]
    seconds = milliseconds(lambda: compute_now(*pair)) / 1000
    few = create_dataset("few", 40)
    for number in range(EXPERIMENTS):
        store_experiment(few, agent, user, number / EXPERIMENTS)
    figures = {f"statistics of 2 × {COMPARED:,} results, in a job, s": seconds}
    return figures | measure_requests(user, agent.pk, *(str(row.pk) for row in pair))


def measure_requests(user: Any, agent_id: str, first: str, second: str) -> Figures:
    from django.test import Client

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(user)
    body = json.dumps({"experimentIdA": first, "experimentIdB": second})
    addresses = {
        "page of this comparison, ms": f"/experiments/compare?a={first}&b={second}",
        "page of a dataset with 100 experiments, ms": "/datasets/few",
        "tab Quality with 100 experiments, ms": f"/agents/{agent_id}/quality",
        "page of an experiment with 2,000 results, ms": f"/experiments/{first}",
        "GET experiments, 100 of them, ms": "/api/experiments?perPage=100",
    }
    actions = {name: partial(client.get, address) for name, address in addresses.items()}
    compare = partial(client.post, "/api/datasets/compared/compare", body, content_type="application/json")
    actions[f"POST compare of 2 × {COMPARED:,} results from the kept row (goal 300), ms"] = compare
    for name, action in actions.items():
        answer = action()
        assert answer.status_code == 200, (name, answer.content[:200])
    figures = {name: least_ms(action) for name, action in actions.items()}
    cpu = min(milliseconds(compare, time.process_time) for _ in range(ROUNDS))
    return figures | {f"CPU of POST compare of 2 × {COMPARED:,} results, with SQLite, ms": cpu}


def tracing(options: argparse.Namespace) -> Figures:
    """Measure what tracing adds to a run, and what a collector costs that is gone."""
    from benchmarks.tracing import measure

    return measure()


def run_step(name: str, arguments: list[str]) -> Figures:
    """Run a step in a new process, so that the peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.evaluations", "--step", name, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2000, help="items of the large experiment")
    parser.add_argument("--exported", type=int, default=20_000, help="items of the export")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments(sys.argv[1:])
    if options.step:
        import django

        django.setup()
        print(json.dumps(globals()[options.step](options)))
        return
    sizes = ["--items", str(options.items), "--exported", str(options.exported)]
    figures: Figures = {}
    with ExitStack() as stack:
        prepare(stack)
        for name in STEPS:
            figures |= run_step(name, sizes)
    figures["load of the machine by all programs"] = os.getloadavg()[0]
    print(json.dumps(figures) if options.json else "\n".join(f"{k}: {v:.2f}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
