"""Mixed load for a long time, with kills: nothing is lost, and memory and connections do not grow."""

import pytest

from tests.operations.soak import VARIABLES, Soak
from tests.served_accounts import serving_with_accounts

SECONDS, KILL_EVERY = 3600, 60


@pytest.mark.drill
def test_a_soak_loses_nothing(tmp_path):
    with serving_with_accounts(tmp_path / "var", **VARIABLES) as copy:
        soak = Soak(copy, SECONDS, KILL_EVERY)

        soak.run()

        soak.assert_sound()
    assert soak.kills > 0
    assert soak.statuses[200] > 0
    assert all(soak.growth(figure) < 1.3 for figure in ("megabytes", "connections", "files"))
