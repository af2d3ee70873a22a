"""The table of the settings of memory in docs/operations.md."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentcms.server.processes import PROJECT
from tests.settings_file import evaluate_settings

SECTION = re.search(r"## Conversations and memory\n(.*?)\n## ", (PROJECT / "docs/operations.md").read_text(), re.S)[1]
ROWS = [[cell.strip() for cell in line.split("|")[1:4]] for line in SECTION.splitlines() if line.startswith("| `")]
NAMES = [
    "THREAD_DAYS",
    "MEMORY_EMBEDDER",
    "RECALL_MOST",
    "WORKING_MEMORY_MAX_KB",
    "SIGNALS_UNSEEN",
    "OBSERVER_TIMEOUT",
]


def value_with(monkeypatch, name, text):
    """Return the value of a setting with this text in the environment."""
    monkeypatch.setenv(name, text)
    return evaluate_settings()[name]


def number(text):
    return int(text.replace(",", ""))


def test_the_table_has_all_settings_of_memory():
    assert [name.strip("`") for name, *_ in ROWS] == NAMES


@pytest.mark.parametrize(("name", "default", "limits"), ROWS, ids=NAMES)
def test_defaults_and_limits_are_those_of_the_settings(tmp_path, monkeypatch, name, default, limits):
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    name = name.strip("`")
    monkeypatch.delenv(name, raising=False)

    assert f"{evaluate_settings()[name]}" == default.strip("`").replace(",", "")
    least, _, most = limits.partition("–")
    for bound, outside in ((least, -1), (most, 1)):
        if bound.strip():
            assert value_with(monkeypatch, name, str(number(bound))) == number(bound)
            with pytest.raises(ImproperlyConfigured, match=name):
                value_with(monkeypatch, name, str(number(bound) + outside))
