"""The refusal of a machine without bubblewrap."""

import pytest
from django.core.exceptions import ValidationError

from tools_app.programs.commands import Command


def assert_refused():
    """Assert that no program starts in the sandbox where bubblewrap is missing."""
    with pytest.raises(ValidationError, match="bubblewrap is not available"):
        Command("boxed", ("/bin/true",), sandbox="bwrap").require_sandbox()
