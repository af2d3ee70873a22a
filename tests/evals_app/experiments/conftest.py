"""An editor, and an agent whose demo model repeats what it is asked."""

import pytest

from tests.factories import AgentFactory, member
from tests.runs import DEMO


@pytest.fixture
def editor():
    return member("editor")


@pytest.fixture
def agent():
    return AgentFactory(model=DEMO, instructions="")
