"""The command of the Python client that runs an experiment: progress, reports and exit codes."""

import io
import json
import os
import signal
import subprocess
import sys
import uuid
from xml.etree import ElementTree

import pytest
from agentcms_client import ApiError, Call, Client
from agentcms_client.command import main, write_line
from agentcms_client.outcomes import worse_scorers
from agentcms_client.reports import json_report as client_report

from agentcms.settings import BASE_DIR
from evals_app.models import Experiment
from evals_app.reports.files import json_report
from tests.evals_app.experiment_runs import make_dataset
from tests.runs import DEMO, LONG, SLOW
from tests.served import Served, wait_until

CLIENT = BASE_DIR / "clients" / "python"
ANSWER = "I am the demo model 'echo'. You said: {}"


@pytest.fixture(scope="module")
def cms(served: Served):
    with Client(served.base_url, served.keys["python"]) as client:
        yield client


@pytest.fixture(scope="module")
def exam(cms):
    """Return the ID of an agent with a worse draft, and of a dataset with a right and a wrong answer."""
    items = [{"input": "One", "groundTruth": ANSWER.format("One")}, {"input": "Two\u0007", "groundTruth": "No"}]
    key = new_dataset(cms, *items)
    cms.create_agent(key, name="Exam", model=DEMO, instructions="")
    cms.update_agent(key, instructions="Be brief.", autoPublish=False)
    return key


@pytest.fixture(scope="module")
def slow(cms):
    """Return the ID of an agent and of a dataset, over which an experiment takes minutes."""
    key = new_dataset(cms, *({"input": f"{number} {LONG}"} for number in range(3)))
    cms.create_agent(key, name="Slow", model=SLOW, instructions="")
    return key


@pytest.fixture(autouse=True)
def environment(served, monkeypatch):
    monkeypatch.setenv("AGENTCMS_URL", served.base_url)
    monkeypatch.setenv("AGENTCMS_API_KEY", served.keys["python"])


def new_dataset(cms, *items):
    key = cms.send(Call("POST", "/api/datasets", body={"name": f"Exam {uuid.uuid4().hex[:8]}"}))["id"]
    cms.send(Call("POST", f"/api/datasets/{key}/items/batch", body={"items": [*items]}))
    return key


def run(key, *options):
    """Return the exit code of the command over the agent and the dataset with an ID."""
    try:
        return main(["run_experiment", key, "--agent", key, *options])
    except SystemExit as end:  # of argparse
        return end.code


def start_process(key, *options):
    command = [sys.executable, "-m", "agentcms_client", "run_experiment", key, "--agent", key, *options]
    return subprocess.Popen(
        command, cwd=CLIENT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_it_gives_a_thread_to_an_agent_whose_memory_needs_one(cms, exam):
    memory = {"options": {}, "observationalMemory": True}
    key = new_dataset(cms, {"input": "One", "groundTruth": ANSWER.format("One")})
    cms.create_agent(key, name="Thread", model=DEMO, instructions="", memory=memory)

    assert run(key, "--scorers", "exact") == 4  # each item failed to run
    assert run(key, "--scorers", "exact", "--thread", "per-item", "--resource", "ci-user") == 0


def experiments_of(cms, key):
    return cms.send(Call("GET", f"/api/datasets/{key}/experiments"))["experiments"]


def test_it_passes_with_progress_and_reports(exam, tmp_path):
    reports = ["--json", str(tmp_path / "a.json"), "--junit", str(tmp_path / "b.xml")]

    process = start_process(exam, "--scorers", "exact", "--fail-under", "exact=0.5", *reports)
    output, progress = process.communicate(timeout=120)

    assert (process.returncode, output) == (0, f"{exam} v1: 2 answered, 0 failed.\nexact: 0.500\n"), progress
    assert progress.splitlines()[-1] == f"{exam} v1: 2 of 2 done, 0 failed"
    report = json.loads((tmp_path / "a.json").read_text())
    assert (report["status"], report["version"], report["missed"]) == ("completed", 1, [])
    assert report["results"][0]["output"] == ANSWER.format("One")
    suite = ElementTree.parse(tmp_path / "b.xml").getroot()
    assert [suite.get(name) for name in ("name", "tests", "failures", "errors")] == [f"{exam} v1", "2", "0", "0"]


@pytest.mark.django_db
def test_the_report_has_the_fields_of_that_of_the_server(cms, exam):
    dataset = make_dataset("One")
    experiment = Experiment.objects.create(dataset=dataset, dataset_version=1)
    item = dataset.items.get()
    experiment.results.create(item=item, item_version=item.versions.get(), state="done")

    ours = json_report(experiment, [])
    of_client = client_report(cms.experiments.run(exam, exam))

    assert of_client.keys() == ours.keys()
    assert of_client["results"][0].keys() == ours["results"][0].keys()


def test_a_missed_bar_exits_with_1_and_names_the_worst_items(exam, tmp_path, capsys):
    code = run(exam, "--scorers", "exact", "--fail-under", "exact=0.8", "--junit", str(tmp_path / "b.xml"))

    assert code == 1
    assert "'exact' scored 0.500. The bar is 0.8.\nThe worst items:\nexact 0.0 | Two" in capsys.readouterr().err
    assert ElementTree.parse(tmp_path / "b.xml").getroot().get("failures") == "1"


def test_a_draft_that_is_worse_than_live_exits_with_1(exam, capsys):
    options = ["--version", "draft", "--scorers", "exact", "--not-worse-than", "live"]

    codes = [run(exam, *options, "--margin", margin) for margin in ("0.02", "0.5")]

    assert codes == [1, 0]
    assert "'exact' may be worse by 0.500 than the baseline. The margin is 0.02." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("statistics", "sentence"),
    [
        ({}, "No item has a score in both experiments, so nothing can be compared with the baseline."),
        (
            {"exact": {"low": None, "difference": None}},
            "'exact' scored no item in both experiments, so it cannot be compared.",
        ),
        (
            {"toxicity": {"low": 0.5, "high": 1.5, "difference": 1, "lowerIsBetter": True}},
            "'toxicity' may be worse by 1.500 than the baseline. The margin is 1.",
        ),
    ],
)
def test_what_cannot_be_compared_does_not_pass(statistics, sentence):
    assert worse_scorers({"scorers": statistics}, margin=1) == [sentence]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--version", "99"], "99"),
        (["--scorers", "missing"], "missing"),
        (["--fail-under", "missing=1"], "Add it to its scorers, or to those of the dataset."),
        (["--scorers", "exact", "--fail-under", "missing=1"], "Add it to its scorers.\n"),
        (["--fail-under", "exact"], "write SCORER=MEAN, such as exact=0.8, not 'exact'"),
        (["--max-cost", "-1"], "--max-cost: "),
        (["--concurrency", "0"], "--concurrency: "),
        (["--fail-under", "exact=nan"], "write SCORER=MEAN, such as exact=0.8, not 'exact=nan'"),
        (["--margin", "nan"], "--margin: invalid finite value: 'nan'"),
        (["--timeout", "0"], "--timeout: invalid positive value: '0'"),
        (["--json", "missing/a.json"], "'missing/a.json' cannot be written."),
        (["--junit", "/"], "'/' cannot be written."),
    ],
)
def test_wrong_use_exits_with_2(exam, options, message, capsys):
    assert run(exam, *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("AGENTCMS_API_KEY", "", "Set AGENTCMS_URL and AGENTCMS_API_KEY."),
        ("AGENTCMS_API_KEY", "wrong\n", "Invalid or expired token"),
        ("AGENTCMS_API_KEY", "Schlüssel", "AGENTCMS_API_KEY has characters that no key has."),
        ("AGENTCMS_URL", "no address", "AGENTCMS_URL is not an address: "),
        ("AGENTCMS_URL", "{url}/app", "The response is a web page with the status 404. Check the address."),
    ],
)
def test_a_wrong_environment_exits_with_2(exam, name, value, message, monkeypatch, capsys):
    monkeypatch.setenv(name, value.replace("{url}", os.environ["AGENTCMS_URL"]))

    assert run(exam) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("version", ["99", "v99", str(uuid.UUID(int=1)), "no version"])
def test_an_unknown_baseline_exits_with_2_before_anything_runs(cms, exam, version, capsys):
    before = experiments_of(cms, exam)

    assert run(exam, "--not-worse-than", version) == 2
    assert "not found" in capsys.readouterr().err
    assert experiments_of(cms, exam) == before


def test_a_known_baseline_may_be_a_number(exam):
    assert run(exam, "--scorers", "exact", "--not-worse-than", "v1") == 0


@pytest.mark.parametrize("option", ["fail_undr", "max_cots"])
def test_a_misspelled_option_starts_nothing(cms, exam, option):
    before = experiments_of(cms, exam)

    with pytest.raises(ApiError) as refused:
        cms.experiments.run(exam, exam, **{option: 1})

    assert [issue["field"] for issue in refused.value.issues] == [option]
    assert experiments_of(cms, exam) == before


class LostStream(io.StringIO):
    """A stream whose reader has gone."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def write(self, text):
        raise BrokenPipeError

    def fileno(self):
        return self.file.fileno()


@pytest.mark.parametrize(("bar", "code"), [("0.1", 0), ("0.8", 1)])
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_that_leaves_does_not_change_the_result(exam, tmp_path, monkeypatch, name, bar, code):
    with (tmp_path / "pipe").open("w") as file:
        monkeypatch.setattr(sys, name, LostStream(file))
        options = ["--scorers", "exact", "--fail-under", f"exact={bar}", "--json", str(tmp_path / "a.json")]

        assert run(exam, *options) == code
    assert json.loads((tmp_path / "a.json").read_text())["status"] == "completed"


def test_a_report_that_cannot_be_written_exits_with_4(exam, capsys):
    assert run(exam, "--json", "/dev/full") == 4
    assert "A report cannot be written: [Errno 28]" in capsys.readouterr().err


def test_an_unexpected_error_exits_with_4(exam, monkeypatch, capsys):
    monkeypatch.setattr(Client, "send", lambda *_: {})

    assert run(exam) == 4
    assert "KeyError" in capsys.readouterr().err


def test_a_line_is_written_in_any_encoding():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    write_line("Prüfer: 1.000", stream)

    assert stream.buffer.getvalue() == b"Pr\\xfcfer: 1.000\n"


def test_the_end_of_the_time_cancels_and_exits_with_3(cms, slow, tmp_path, capsys):
    code = run(slow, "--timeout", "1", "--concurrency", "1", "--json", str(tmp_path / "a.json"))

    assert code == 3
    assert "The experiment took longer than 1 seconds. It was cancelled." in capsys.readouterr().err
    assert json.loads((tmp_path / "a.json").read_text())["status"] == "cancelled"
    assert experiments_of(cms, slow)[0]["metadata"] == {"cancelled": True}


def test_a_job_that_ci_stops_cancels_its_experiment_and_exits_with_3(cms, slow):
    process = start_process(slow, "--concurrency", "1")
    assert " done, 0 failed" in process.stderr.readline()  # from here on the client knows what to cancel

    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors.splitlines()[-1]) == (3, "Cancelled.")
    wait_until(lambda: experiments_of(cms, slow)[0]["metadata"] == {"cancelled": True}, 60, "the end of it")


def test_items_that_fail_exit_with_4(cms, exam, tmp_path, capsys):
    key = new_dataset(cms, {"input": "One"}, {"input": "Two", "scorerIds": ["missing"]})
    report = ["--junit", str(tmp_path / "b.xml")]

    code = main(["run_experiment", key, "--agent", exam, *report])

    assert code == 4
    assert "1 item failed to run.\nfailed: " in capsys.readouterr().err
    assert ElementTree.parse(tmp_path / "b.xml").getroot().get("errors") == "1"


def test_workflows_and_scorers_are_run_too(cms, capsys):
    key = new_dataset(cms, {"input": {"output": "No source"}, "groundTruth": 0})

    code = main(
        ["run_experiment", key, "--scorer", "cites-source", "--scorers", "agreement", "--fail-under", "agreement=1"]
    )

    assert (code, capsys.readouterr().out) == (0, "cites-source: 1 answered, 0 failed.\nagreement: 1.000\n")
