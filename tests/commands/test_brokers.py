"""A broker of one's own in place of the embedded one."""

import pytest

from tests.operations.running_copy import wait_for_jobs
from tests.served import serving


@pytest.mark.parametrize(
    ("variable", "scheme"), [("REDIS_URL", "unix"), ("CELERY_BROKER_URL", "redis+socket")], ids=["both", "broker"]
)
def test_jobs_go_through_the_broker_that_is_named_and_no_other_is_started(tmp_path, valkey, variable, scheme):
    named = {variable: valkey.replace("unix://", f"{scheme}://")}

    with serving(tmp_path / "var", **named) as copy:
        copy.manage("shell", "-v", "0", "-c", "from jobs_app import runner; runner.start('clean_up')")

        assert wait_for_jobs(copy, "clean_up")[0][0] == "done"
        assert copy.named("valkey-server") == []
        assert not (copy.data_dir / "valkey.url").exists()
