"""Examples of code that runs an agent, with its ID, its required variables, and a conversation if it has a memory."""

from __future__ import annotations

import json
from urllib.parse import quote

from django.http import HttpRequest

from agentcms.web.code_examples import CodeExample, ExampleRequest, code_examples, javascript_value
from agentcms.wire.json_types import JSONMapping, JSONObject
from agents_app.configuration.schema import to_wire_dict
from agents_app.configuration.variables import Variable, declared_variables
from agents_app.models import Agent
from versions_app.models.version import get_live_version

MESSAGE = "Hello"
THREAD = "your-conversation"
VALUES_BY_TYPE: JSONObject = {"number": 1.5, "integer": 1, "boolean": True, "object": {}, "array": []}


def use_examples(request: HttpRequest, agent: Agent) -> list[CodeExample]:
    """Return examples that run the live version: curl, Python, and JavaScript with the published client."""
    origin = f"{request.scheme}://{request.get_host()}"
    # Without a draft, the row has the configuration of the live version, whose snapshot is not loaded then.
    live = get_live_version(agent).snapshot if agent.has_draft else to_wire_dict(vars(agent))
    variables = required_values(live)
    # Without a thread nothing is remembered, and an agent with an observational memory does not answer.
    memory = {"memory": {"thread": THREAD}} if live.get("memory") else {}
    body = {"messages": MESSAGE, **({"variables": variables} if variables else {}), **memory}
    call = ExampleRequest("POST", f"{origin}/api/agents/{quote(agent.pk, safe='')}/generate", body)
    curl, python, javascript = code_examples(call)
    options = {**({"requestContext": variables} if variables else {}), **memory}
    return [curl, python, javascript._replace(code=client_code(origin, agent.pk, options))]


def required_values(live: JSONMapping) -> JSONObject:
    """Return a value for each variable that the live version needs."""
    return {
        variable.name: example_of_variable(variable)
        for variable in declared_variables(live)
        if variable.is_required and variable.default is None
    }


def example_of_variable(variable: Variable) -> object:
    """Return an allowed value of a variable, for people to replace."""
    if variable.choices:
        return variable.choices[0]
    if not variable.types or "string" in variable.types:
        return f"your {variable.name}"
    return VALUES_BY_TYPE.get(variable.types[0])


def client_code(origin: str, agent_id: str, options: JSONObject) -> str:
    """Return JavaScript that uses the published client. The client puts the ID into the URL as it is."""
    text = json.dumps(agent_id, ensure_ascii=False)
    argument = text if quote(agent_id, safe="") == agent_id else f"encodeURIComponent({text})"
    second = f", {javascript_value(options)}".replace("\n  ", "\n") if options else ""
    return f"""import {{ MastraClient }} from "@mastra/client-js";

const client = new MastraClient({{
  baseUrl: {json.dumps(origin)},
  headers: {{ Authorization: `Bearer ${{process.env.KEY}}` }},
}});
const answer = await client.getAgent({argument}).generate({json.dumps(MESSAGE)}{second});
console.log(answer.text);"""
