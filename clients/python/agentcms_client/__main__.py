"""Entry point of `python -m agentcms_client`."""

import signal
import sys

from agentcms_client.command import main

if __name__ == "__main__":
    # CI ends a job with SIGTERM. Like Ctrl-C, it cancels the experiment.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
