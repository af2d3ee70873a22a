"""The tests."""

import sys

# The factories would import SQLAlchemy, which is installed for DBOS. That takes a second in each worker of the tests.
sys.modules.setdefault("factory.alchemy", None)
