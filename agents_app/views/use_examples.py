"""Examples of code that runs an agent, with its ID and its required variables filled in."""

from __future__ import annotations

import json
from urllib.parse import quote

from django.http import HttpRequest

from agentcms.web.code_examples import CodeExample, ExampleRequest, code_examples, javascript_value
from agentcms.wire.json_types import JSONObject
from agents_app.configuration.schema import to_wire_dict
from agents_app.configuration.variables import Variable, declared_variables
from agents_app.models import Agent
from versions_app.models.version import get_live_version

MESSAGE = "Hello"
VALUES_BY_TYPE: JSONObject = {"number": 1.5, "integer": 1, "boolean": True, "object": {}, "array": []}


def use_examples(request: HttpRequest, agent: Agent) -> list[CodeExample]:
    """Return examples that run the live version: curl, Python, and JavaScript with the published client."""
    origin = f"{request.scheme}://{request.get_host()}"
    variables = required_values(agent)
    body = {"messages": MESSAGE, **({"variables": variables} if variables else {})}
    call = ExampleRequest("POST", f"{origin}/api/agents/{quote(agent.pk, safe='')}/generate", body)
    curl, python, javascript = code_examples(call)
    return [curl, python, javascript._replace(code=client_code(origin, agent.pk, variables))]


def required_values(agent: Agent) -> JSONObject:
    """Return a value for each variable that the live version needs."""
    # Without a draft, the row has the declarations of the live version, whose snapshot is not loaded then.
    live = get_live_version(agent).snapshot if agent.has_draft else to_wire_dict(vars(agent))
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


def client_code(origin: str, agent_id: str, variables: JSONObject) -> str:
    """Return JavaScript that uses the published client. The client puts the ID into the URL as it is."""
    text = json.dumps(agent_id, ensure_ascii=False)
    argument = text if quote(agent_id, safe="") == agent_id else f"encodeURIComponent({text})"
    options = f", {javascript_value({'requestContext': variables})}".replace("\n  ", "\n") if variables else ""
    return f"""import {{ MastraClient }} from "@mastra/client-js";

const client = new MastraClient({{
  baseUrl: {json.dumps(origin)},
  headers: {{ Authorization: `Bearer ${{process.env.KEY}}` }},
}});
const answer = await client.getAgent({argument}).generate({json.dumps(MESSAGE)}{options});
console.log(answer.text);"""
