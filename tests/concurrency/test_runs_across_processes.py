"""Reading and cancelling runs of another process."""

import contextlib
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.served import Process, Served, free_port, wait_until
from tests.served_accounts import serving_with_accounts

SLOW = {"provider": "demo", "name": "echo", "delay": 0.05}
LONG = "word " * 2000  # takes a hundred seconds to answer
NEW = {"instructions": "Answer.", "model": SLOW}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Iterator[Served]:
    """Start a copy with one web process."""
    with serving_with_accounts(tmp_path_factory.mktemp("one") / "var", WEB_WORKERS="1") as copy:
        with copy.client(copy.keys["publisher"]) as client:
            made = client.post("/api/stored/agents", json={"id": "slow", "name": "Slow", **NEW})
            assert made.status_code == 201, made.text
        yield copy


@contextlib.contextmanager
def another_web_process(copy: Served) -> Iterator[tuple[httpx.Client, Process]]:
    """Start another web process on the same data."""
    port = free_port()
    room = {"PORT": str(port), "WEB_WORKERS": "1", "WEB_THREADS": "4"}
    process = copy.start_module("agentcms.server.web", log=copy.log, **room)
    headers = {"Authorization": f"Bearer {copy.keys['publisher']}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            wait_until(lambda: responds(client), 60, "the web process beside")
            yield client, process
    finally:
        process.terminate()
        process.wait(30)


def responds(client: httpx.Client) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return client.get("/healthz").status_code == 200
    return False


@pytest.fixture(scope="module")
def other(copy):
    with another_web_process(copy) as (client, _):
        yield client


@pytest.fixture
def one(copy):
    with copy.client(copy.keys["publisher"]) as client:
        yield client


@contextlib.contextmanager
def stream_of(client: httpx.Client, run_id: str, after: int = 0) -> Iterator[Iterator[tuple[int, dict]]]:
    """Yield an iterator over the numbered chunks of a run."""
    headers = {"Last-Event-ID": str(after)} if after else {}
    with client.stream("GET", f"/api/runs/{run_id}/stream", headers=headers) as answer:
        assert answer.status_code == 200
        yield events(answer.iter_lines())


def events(lines: Iterator[str]) -> Iterator[tuple[int, dict]]:
    number = 0
    for line in lines:
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: {"):
            yield number, json.loads(line[6:])


def start_run(client: httpx.Client, text: str = LONG, **options: object) -> str:
    """Start a run, close its stream and return its id. The run continues."""
    with client.stream("POST", "/api/agents/slow/stream", json={"messages": text, **options}) as answer:
        assert answer.status_code == 200, answer.read()
        return answer.headers["X-Run-ID"]


def next_events(followed: Iterator[tuple[int, dict]], count: int) -> list[tuple[int, dict]]:
    return [next(followed) for _ in range(count)]


def test_a_stream_continues_in_another_process_without_gap_or_repeat(one, other):
    run_id = start_run(one, "word " * 60)

    read = []
    for client in (one, other) * 3:
        with stream_of(client, run_id, after=read[-1][0] if read else 0) as followed:
            read += next_events(followed, 2)
    with stream_of(other, run_id, after=read[-1][0]) as followed:
        read += list(followed)

    run = one.get(f"/api/runs/{run_id}").json()
    stored = one.get(f"/api/runs/{run_id}/events").json()["events"]
    assert [number for number, _ in read] == list(range(1, len(stored) + 1))
    assert [(data["type"], data["payload"]) for _, data in read] == [
        (event["data"]["type"], event["data"]["payload"]) for event in stored
    ]
    assert "".join(data["payload"]["text"] for _, data in read if data["type"] == "text-delta") == run["output"]


def test_a_reader_in_another_process_gets_events_during_the_run(one, other):
    run_id = start_run(one)

    with stream_of(other, run_id) as followed:
        next_events(followed, 6)
        assert one.get(f"/api/runs/{run_id}").json()["status"] == "running"

    assert other.post(f"/api/runs/{run_id}/cancel").status_code == 200


def test_a_run_is_cancelled_from_another_process(one, other, is_drill):
    from agentcms.wire.timestamps import parse_timestamp

    run_id = start_run(one)
    with stream_of(one, run_id) as followed:
        next_events(followed, 4)
        cancelling = other.post(f"/api/runs/{run_id}/cancel").json()
        rest = [data["type"] for _, data in followed]

    run = other.get(f"/api/runs/{run_id}").json()
    assert cancelling["id"] == run_id
    assert (run["status"], rest[-1]) == ("cancelled", "abort")
    seconds = (parse_timestamp(run["finishedAt"]) - parse_timestamp(cancelling["cancelRequestedAt"])).total_seconds()
    print(f"stopped {seconds:.2f} s after somebody asked another process")
    assert seconds < (1 if is_drill else 10)


def test_a_version_published_in_one_process_runs_next_in_another(one, other):
    made = one.post("/api/stored/agents", json={"id": "moved", "name": "First", **NEW}).json()
    ask = {"messages": "Hello"}
    assert other.post("/api/agents/moved/generate", json=ask).json()["versionNumber"] == 1

    one.patch("/api/stored/agents/moved", json={"name": "Second"})
    assert other.post("/api/agents/moved/generate", json=ask).json()["versionNumber"] == 2

    one.post(f"/api/stored/agents/moved/versions/{made['activeVersionId']}/activate")
    assert other.post("/api/agents/moved/generate", json=ask).json()["versionNumber"] == 1


def test_a_run_of_a_killed_process_fails_with_a_reason_and_stays_readable(copy, one):
    with another_web_process(copy) as (client, process):
        run_id = start_run(client, durable=False)
        with stream_of(one, run_id) as followed:
            next_events(followed, 4)
            kill(process)
            read = [data for _, data in followed]

    run = one.get(f"/api/runs/{run_id}").json()
    assert (run["status"], run["error"]) == ("failed", "The server process of this run stopped. Run it again.")
    assert read[-1]["type"] == "error"
    numbers = [event["number"] for event in one.get(f"/api/runs/{run_id}/events").json()["events"]]
    assert numbers == list(range(1, len(numbers) + 1))


def kill(process: Process) -> None:
    """Kill a web server and its workers with SIGKILL."""
    import psutil

    for member in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        member.kill()
    process.wait(10)


def test_a_stopping_process_ends_its_runs_and_its_streams(copy, one):
    """A run of another process, such as a durable one of the worker, goes on."""
    with another_web_process(copy) as (client, process):
        run_id, elsewhere, durable = start_run(client, durable=False), start_run(one, durable=False), start_run(client)
        with (
            stream_of(client, run_id) as followed,
            stream_of(client, elsewhere) as other_run,
            stream_of(client, durable) as durable_run,
        ):
            for events in (followed, other_run, durable_run):
                next_events(events, 4)
            process.terminate()
            last = [data["type"] for _, data in followed][-1]
            left = [data["type"] for events in (other_run, durable_run) for _, data in events]
        process.wait(60)  # on a busy machine; the server kills workers that do not stop within WEB_STOP_TIMEOUT

    run = one.get(f"/api/runs/{run_id}").json()
    assert (run["status"], last) == ("failed", "error")
    assert not {"finish", "error", "abort"} & set(left)
    for going_on in (elsewhere, durable):
        assert one.get(f"/api/runs/{going_on}").json()["status"] == "running"
        one.post(f"/api/runs/{going_on}/cancel")
