"""A configured broker in place of the embedded one."""

import pytest

from tests.operations.running_copy import wait_for_jobs
from tests.served_accounts import serving_with_accounts


@pytest.mark.parametrize(
    ("variable", "scheme"), [("REDIS_URL", "unix"), ("CELERY_BROKER_URL", "redis+socket")], ids=["both", "broker"]
)
def test_jobs_use_the_configured_broker_and_no_other_is_started(tmp_path, valkey, variable, scheme):
    named = {variable: valkey.replace("unix://", f"{scheme}://")}

    with serving_with_accounts(tmp_path / "var", WEB_WORKERS="1", **named) as copy:
        with copy.client(copy.keys["root"]) as client:
            assert client.post("/api/stored/agent-export").status_code == 202

        assert wait_for_jobs(copy, "export_agents")[0][0] == "done"
        assert copy.processes_matching("valkey-server") == []
        assert not (copy.data_dir / "valkey.url").exists()
        # A broker alone is not a cache, which the start says.
        assert ("the processes share no cache" in copy.log_text()) == (variable == "CELERY_BROKER_URL")
