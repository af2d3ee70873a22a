"""The section "Use this agent". tests/client_js executes its examples."""

import re

from tests.factories import AgentFactory
from tests.page_client import editor, viewer

__all__ = ["editor", "viewer"]

JAVASCRIPT = """import { MastraClient } from &quot;@mastra/client-js&quot;;

const client = new MastraClient({
  baseUrl: &quot;http://testserver&quot;,
  headers: { Authorization: `Bearer ${process.env.KEY}` },
});
const answer = await client.getAgent(&quot;concierge&quot;).generate(&quot;Hello&quot;, {
  requestContext: {
    plan: &quot;free&quot;,
    seats: 1
  }
});
console.log(answer.text);"""


def code(answer, language):
    return re.search(rf'id="use-{language}"[^>]*>(.*?)</pre>', answer.content.decode(), re.DOTALL)[1]


def test_the_examples_have_the_id_and_the_required_variables(editor):
    schema = {
        "properties": {"plan": {"enum": ["free", "paid"]}, "seats": {"type": "integer"}, "tone": {}},
        "required": ["seats", "plan"],
    }
    AgentFactory(id="concierge", request_context_schema=schema)

    answer = editor.get("/agents/concierge")

    assert code(answer, "javascript") == JAVASCRIPT
    assert "http://testserver/api/agents/concierge/generate" in code(answer, "curl")
    for language in ("curl", "python"):
        assert "&quot;plan&quot;: &quot;free&quot;" in code(answer, language)
        assert "&quot;seats&quot;: 1" in code(answer, language)
        assert "tone" not in code(answer, language)


def test_the_examples_follow_the_live_version(editor):
    agent = AgentFactory(id="concierge")
    agent.edit({"request_context_schema": {"required": ["seat"]}})

    assert "requestContext: {\n    seat: &quot;your seat&quot;\n  }" in code(
        editor.get("/agents/concierge"), "javascript"
    )


def test_the_examples_name_a_conversation_for_an_agent_with_a_memory(editor):
    agent = AgentFactory(id="concierge", memory={"options": {}, "observationalMemory": True})

    answer = editor.get("/agents/concierge")

    assert "memory: {\n    thread: &quot;your-conversation&quot;\n  }" in code(answer, "javascript")
    for language in ("curl", "python"):
        assert "&quot;thread&quot;: &quot;your-conversation&quot;" in code(answer, language)
    agent.edit({"memory": None})
    assert "your-conversation" not in editor.get("/agents/concierge").content.decode()


def test_readers_see_the_examples_too(viewer):
    AgentFactory(id="concierge")

    assert ".generate(&quot;Hello&quot;);" in code(viewer.get("/agents/concierge"), "javascript")


def test_an_id_is_quoted_for_each_language(editor):
    AgentFactory(id="it's <b> 100%")

    answer = editor.get("/agents/it's%20%3Cb%3E%20100%25")

    assert "getAgent(encodeURIComponent(&quot;it&#x27;s &lt;b&gt; 100%&quot;))" in code(answer, "javascript")
    assert "/api/agents/it%27s%20%3Cb%3E%20100%25/generate" in code(answer, "python")
