"""The example of docs/engines.md."""

import re
import sys
from types import ModuleType

import pytest

from agentcms.server.processes import PROJECT
from runs_app.engine.runners import get_runner
from runs_app.models import AgentRun
from tests.factories import AgentFactory, member
from tests.runs import DEMO, start_run, wait_for_end

pytestmark = pytest.mark.usefixtures("idle_engine")


def test_an_engine_of_ones_own_executes_runs(db, settings, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "engines.md").read_text(), re.DOTALL)
    shop, engines = ModuleType("shop"), ModuleType("shop.engines")
    exec(code, engines.__dict__)
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.engines", engines)
    settings.RUN_ENGINE, settings.RUN_DURABLE = "shop.engines.QueueRunner", True
    get_runner.cache_clear()
    try:
        run = wait_for_end(start_run(AgentFactory(model=DEMO), member("editor")))
        runner = get_runner()
    finally:
        get_runner.cache_clear()

    assert (run.status, run.is_durable) == (AgentRun.Status.SUCCEEDED, True)
    assert isinstance(runner, engines.QueueRunner)
