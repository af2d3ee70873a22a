"""The processes of the embedded stack: when an ended one is started again, and what stops them all."""

import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from agentcms.server import supervisor


@pytest.mark.parametrize(
    ("seconds", "delays"),
    [(2, [0.5, 1.0, 2.0, 4.0]), (12, [0.5, 0.5, 0.5, 0.5])],
    ids=["failing at its start", "killed while it serves"],
)
def test_only_a_process_that_fails_at_its_start_waits_longer_each_time(monkeypatch, seconds, delays):
    now = 1000.0
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now)
    lines = []
    stack = SimpleNamespace(log=SimpleNamespace(line=lambda name, text: lines.append(text)), _clean_up=lambda _: None)
    child = SimpleNamespace(name="web", is_running=False, started_at=now, exit_code=-9)
    supervised = SimpleNamespace(child=child, failures=0, start_at=None)

    for _ in delays:
        child.started_at = now - seconds
        supervised.start_at = None
        supervisor.Supervisor._restart_if_ended(stack, supervised)

    assert [line.partition("Restart in ")[2] for line in lines] == [f"{delay:.1f} s." for delay in delays]


@pytest.mark.parametrize("stopping", [False, True])
def test_a_stop_signal_does_not_interrupt_a_stop_that_has_begun(stopping):
    signals, write = os.pipe()
    os.write(write, bytes([signal.SIGINT]))
    stack = SimpleNamespace(signals=signals, stopping=stopping, stopping_since=None)

    with nullcontext() if stopping else pytest.raises(supervisor.StopRequested, match="SIGINT"):
        supervisor.Supervisor._read_signals(stack)

    assert stack.stopping_since is not None
