"""The examples for proxies hide the internal pages."""

import re

from agentcms.server.processes import PROJECT


def test_caddy_answers_internal_pages_in_a_handle_block():
    text = (PROJECT / "deploy" / "Caddyfile.example").read_text()

    # Caddy runs `respond` after all `handle` blocks, of which the last one takes every request.
    assert re.search(
        r"^\t@internal path /metrics /readyz\n\thandle @internal \{\n\t\trespond 404\n\t\}$", text, re.MULTILINE
    )
    assert not re.search(r"^\trespond ", text, re.MULTILINE)
