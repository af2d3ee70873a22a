"""The list of sections beside the editor."""

import re

from tests.factories import AgentFactory


def test_each_section_of_the_form_is_in_the_index_in_order(publisher, db):
    html = publisher.get(f"/agents/{AgentFactory().pk}").content.decode()
    form = html[html.index('id="agent-form"') :]
    index = re.search(r'<nav class="section-index".*?</nav>', html, re.DOTALL).group()

    sections = re.findall(r'<(?:section|details) class="section[^>]* id="([a-z-]+)"', form)

    assert {"mcp-tools", "background-tasks"} <= {*sections}
    *listed, examples = re.findall(r'href="#([a-z-]+)"', index)
    assert (listed, examples) == (sections[:-1], "use-examples")


def test_the_search_for_agents_is_empty_on_pages_with_a_search_of_their_own(publisher, db):
    html = publisher.get("/threads?q=lisbon").content.decode()

    assert re.search(r'<input type="search" name="q"[^>]*aria-label="Search agents"', html).group().count('value=""')
