"""ACP agents of workers that are killed: no task is given twice, and no process stays."""

import json
import os
import random
import sys
import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from django.db.models import F

from runs_app.approvals.decisions import Decision, Verdict, decide_pending_call
from runs_app.models import AgentRun, PendingCall
from tests.conftest import DRILL
from tests.factories import AgentFactory
from tests.runs import chunks, start_run
from tests.served import wait_until
from tests.tools_app.acp.conftest import BOXED, PROGRAM, create_agent
from tests.tools_app.acp.test_killed_workers import command_lines
from tools_app.acp.workspaces.folders import workspace_folder

KILLS = 50 if DRILL else 2
# The name of the tool, its argument, and the field of the agent.
TOOL, SUB_AGENT = ("acp-worker", "task", "tools"), ("agent-acp-worker", "prompt", "agents")
END_SECONDS = 2  # in which all processes of an agent end with their worker


@pytest.fixture
def workspaces(task_engine, settings, monkeypatch):
    """Name the agent of the tests as a program for all processes. Return the folder of the workspaces."""
    names = {key: {"argv": [sys.executable, str(PROGRAM)]} for key in ("boxed", "bare")}
    names["bare"]["sandbox"] = "none"
    settings.ACP_COMMANDS = names
    settings.WORKSPACES_DIR = folder = task_engine.folder / "workspaces"
    commands = task_engine.folder / "commands.json"
    commands.write_text(json.dumps(names))
    monkeypatch.setenv("ACP_COMMANDS", str(commands))
    monkeypatch.setenv("WORKSPACES_DIR", str(folder))
    return folder


def kill_worker(engine, processes):
    """Kill the worker. The next one is a fork of the process, or is started."""
    if engine.name == "process":
        for child in psutil.Process(processes[-1].pid).children():
            child.kill()
    else:
        engine.kill(processes[-1])
        processes.append(engine.start_process())


def start(engine, plan, **fields):
    model = {"provider": "planned", "name": "plan", "plan": plan}
    agent = AgentFactory(model=model, **fields)
    return start_run(agent, engine.user, "Begin", options={"durable": True})


def test_killed_workers_give_no_task_twice_and_leave_no_process(task_engine, workspaces):
    engine, processes = task_engine, [task_engine.start_process()]
    create_agent(command_key=BOXED)
    known = 0
    for number in range(KILLS if engine.name == "process" else min(KILLS, 5)):
        marker = f"4{os.getpid()}{number:03}"
        is_tool = number % 2 == 0
        name, member, field = TOOL if is_tool else SUB_AGENT
        call = [name, {member: f"log {number} {marker}"}]
        run = start(engine, [[call], "Done."], **{field: ["acp-worker"]})
        log = folder_of(run) / "log"
        if number % 4 < 2:  # while the agent works
            wait_until(log.exists, 60, f"the task of {run}; {engine.log()}")
            time.sleep(random.uniform(0, 0.9))
        else:
            time.sleep(random.uniform(0, 2.5))
        before = processes_of(workspaces, marker)
        kill_worker(engine, processes)
        wait_until(lambda ids=before: not ids & processes_of(workspaces, ""), END_SECONDS, "the end of all processes")
        engine.finish(run, 60)

        lines = log.read_text().splitlines() if log.exists() else []
        text = str(chunks(run, "tool-result"))
        assert run_status(run) == "succeeded"
        assert lines.count(f"{number} begins") <= 1
        assert ("not known" in text or "unknown" in text) is (f"logged {number}" not in text), text
        assert len(lines) == 2 or f"logged {number}" not in text
        known += f"logged {number}" in text
        wait_until(lambda mark=marker: not processes_of(workspaces, mark), 10, "the end of all processes of the run")
    assert known < KILLS


def folder_of(run):
    return workspace_folder(run.owner_id, None, run.pk, "")


def run_status(run):
    return AgentRun.objects.get(pk=run.pk).status


def processes_of(folder: Path, marker: str) -> set[str]:
    """Return the IDs of the processes of agents, and of those that agents started with a mark."""
    return {*command_lines(str(folder)), *(command_lines(f"sleep\0{marker}"))}


def test_a_permission_is_decided_in_another_process_a_day_later_and_acts_once(task_engine, workspaces):
    engine, processes = task_engine, [task_engine.start_process()]
    create_agent(command_key=BOXED, permissions="ask")
    plan = [[["acp-worker", {"task": "edit a.txt hello"}]], "Done."]
    run = start(engine, plan, tools=["acp-worker"])
    calls = PendingCall.objects.waiting().filter(root_id=run.pk)
    wait_until(lambda: calls.exists() and run_status(run) == "suspended", 60, f"the request; {engine.log()}")
    kill_worker(engine, processes)
    a_day_passes(run)
    file = folder_of(run) / "a.txt"
    was_written = file.exists()

    # The process of this test decides. It started neither the agent nor the run.
    data = {"outcome": "selected", "optionId": "yes"}
    decide_pending_call(calls.get(), Decision(Verdict.RESUME, resume_data=data), engine.user, PendingCall.Via.API)
    engine.finish(run, 60)

    assert not was_written
    assert file.read_text() == "hello"
    assert chunks(run, "tool-result")[-1]["payload"]["result"] == {"output": "edited"}
    assert len(chunks(run, "acp-file")) == 1
    assert PendingCall.objects.filter(root_id=run.pk).count() == 1


def a_day_passes(run):
    """Move the times of a run and of its calls into the past."""
    for rows in (AgentRun.objects.filter(pk=run.pk), PendingCall.objects.filter(root_id=run.pk)):
        times = [field.name for field in rows.model._meta.fields if field.get_internal_type() == "DateTimeField"]
        rows.update(**{name: F(name) - timedelta(days=1) for name in times})
