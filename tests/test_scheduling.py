"""The distribution of test files to workers."""

from types import SimpleNamespace
from unittest.mock import Mock

from tests.scheduling import BothEndsScheduling


def test_every_other_worker_takes_files_from_the_end():
    tests = [f"tests/test_{name}.py::test_{number}" for name in "abcd" for number in range(3)]
    option = SimpleNamespace(tx=["2*popen"], loadscopereorder=False)
    scheduling = BothEndsScheduling(SimpleNamespace(option=option, getvalue=lambda name: getattr(option, name)))
    first, second = workers = [Mock(shutting_down=False), Mock(shutting_down=False)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, tests)

    scheduling.schedule()
    scheduling.mark_test_complete(second, 9)

    assert [call.args[0] for call in first.send_runtest_some.mock_calls] == [[0, 1, 2]]
    assert [call.args[0] for call in second.send_runtest_some.mock_calls] == [[9, 10, 11], [6, 7, 8]]
