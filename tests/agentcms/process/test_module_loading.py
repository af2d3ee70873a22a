"""The loading of the modules of a process when it starts."""

import gc

import pytest

from agentcms.process.module_loading import loading_modules


@pytest.mark.parametrize("fails", [False, True])
def test_modules_are_loaded_without_garbage_collection(fails):
    during = []
    try:
        with loading_modules():
            during.append(gc.isenabled())
            if fails:
                raise ImportError
    except ImportError:
        pass

    assert during == [False]
    assert gc.isenabled()
