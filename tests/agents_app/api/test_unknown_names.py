"""Unknown names in requests: warnings with the nearest name, or errors with `strict=true`."""

from urllib.parse import quote

import pytest

from agents_app.registry import processor
from tests.api_client import AGENTS, MODEL, agent_path, version_path
from tests.factories import AgentFactory

NEW = {"id": "new", "name": "New", "instructions": "", "model": MODEL}


def fields(body):
    return [(warning["field"], warning["message"]) for warning in body.get("warnings", ())]


def issues(answer):
    assert answer.status_code == 400, answer.body
    return [(issue["field"], issue["message"]) for issue in answer.body["issues"]]


def did_you_mean(**nearest):
    return [(sent, f"This name is unknown. Did you mean {name}?") for sent, name in nearest.items()]


TYPOS = {"toolz": ["calculator"], "temprature": 1, "instrctions": "Hi"}
EXPECTED = [
    ("toolz", "This name is unknown. Did you mean tools?"),
    ("temprature", "This name is unknown. Nothing reads it."),
    ("instrctions", "This name is unknown. Did you mean instructions?"),
]


def test_unknown_keys_of_a_new_agent_are_warnings(api):
    created = api.post(AGENTS, {**NEW, **TYPOS})

    assert created.status_code == 201
    assert fields(created.body) == EXPECTED
    assert created.body["warnings"][0] == {"field": "toolz", "key": "toolz", "message": EXPECTED[0][1]}
    assert "toolz" not in api.get(agent_path("new")).body


def test_a_new_agent_as_a_draft_is_a_warning(api):
    message = "Version 1 of an agent is always live, so this has no effect. Omit it, and save drafts by PATCH."
    body = {**NEW, "autoPublish": False}

    assert issues(api.post(f"{AGENTS}?strict=true", body)) == [("autoPublish", message)]
    created = api.post(AGENTS, body)

    assert (created.status_code, created.body["activeVersionNumber"]) == (201, 1)
    assert fields(created.body) == [("autoPublish", message)]


def test_unknown_keys_of_a_change_are_warnings(api):
    api.create()

    assert fields(api.patch(agent_path(), TYPOS).body) == EXPECTED
    assert fields(api.patch(agent_path(), {"auto_publish": False}).body) == did_you_mean(auto_publish="autoPublish")


def test_strict_refuses_unknown_keys_with_their_path(api):
    api.create()

    assert issues(api.post(f"{AGENTS}?strict=true", {**NEW, **TYPOS})) == EXPECTED
    assert issues(api.patch(f"{agent_path()}?strict=true", TYPOS)) == EXPECTED
    assert api.get(agent_path()).body["activeVersionNumber"] == 1
    assert api.get(agent_path("new")).status_code == 404


def test_strict_names_all_problems_at_once(api):
    body = {name: value for name, value in NEW.items() if name != "instructions"}

    refused = issues(api.post(f"{AGENTS}?strict=true", {**body, "instrctions": "Hi"}))

    assert refused == [("instructions", "This is required."), *did_you_mean(instrctions="instructions")]


def test_warnings_about_names_are_beside_those_about_references(api):
    created = api.post(AGENTS, {**NEW, "tools": ["nothing"], "toolz": []})

    assert [warning["key"] for warning in created.body["warnings"]] == ["nothing", "toolz"]


@pytest.mark.parametrize("strict", ["", "?strict=true"])
def test_an_agent_can_be_sent_back_as_it_was_read(api, strict):
    read = api.create(tools=["calculator"]).body

    answer = api.patch(f"{agent_path()}{strict}", read)

    assert (answer.status_code, answer.body) == (200, read)


def test_keys_of_the_protocol_without_effect_are_silent_unless_strict(api):
    sent = {"visibility": "private", "authorId": "x", "skills": {}}

    assert fields(api.post(AGENTS, {**NEW, **sent}).body) == []
    refused = issues(api.patch(f"{agent_path('new')}?strict=true", sent))
    assert refused == [(name, "This is not supported here and has no effect. Omit it.") for name in sent]


def test_every_write_reports_unknown_keys(api):
    api.create()
    version = api.get(agent_path()).body["activeVersionId"]
    api.patch(agent_path(), {"name": "Second"})
    api.create("gone")
    api.delete(agent_path("gone"))
    entry = api.get("/api/stored/deleted-agents").body["deletedAgents"][0]["id"]
    requests = [
        ("POST", version_path(version, "activate"), {}),
        ("POST", version_path(version, "restore"), {}),
        ("POST", agent_path("concierge", "activations", "undo"), {}),
        ("POST", agent_path("concierge", "versions"), {}),
        ("PATCH", version_path(version), {}),
        ("POST", agent_path("concierge", "discard-draft"), {}),
        ("POST", agent_path("concierge", "duplicate"), {"id": "copy"}),
        ("POST", agent_path("concierge", "archive"), {}),
        ("POST", agent_path("concierge", "unarchive"), {}),
        ("POST", f"/api/stored/deleted-agents/{entry}/restore", {}),
    ]
    for method, path, body in requests:
        sent = {**body, "chagneMessage": "Typo"}
        assert issues(api.call(method, f"{path}?strict=true", sent))[0][0] == "chagneMessage", path
        answer = api.call(method, f"{path}?strcit=true", sent)
        assert answer.status_code in (200, 201), answer.body
        assert fields(answer.body)[0] == ("strcit", "This name is unknown. Did you mean strict?"), path
        assert fields(answer.body)[1][0] == "chagneMessage", path


# --- Query parameters

PAGE_AND_CURSOR = "A page by cursor has no number, so this has no effect. Omit page or cursor."

LISTS = [
    (AGENTS, "serach", "search"),
    (f"{AGENTS}?cursor=", "serach", "search"),
    (agent_path(), "verisonNumber", "versionNumber"),
    (agent_path("concierge", "versions"), "prePage", "perPage"),
    (agent_path("concierge", "activations"), "prePage", "perPage"),
    ("/api/stored/deleted-agents", "ownerID", "ownerId"),
    ("/api/runs", "staus", "status"),
]


@pytest.mark.parametrize(("path", "sent", "nearest"), LISTS)
def test_unknown_parameters_are_warnings(api, path, sent, nearest):
    api.create()
    separator = "&" if "?" in path else "?"

    answer = api.get(f"{path}{separator}{sent}=1")

    assert fields(answer.body) == did_you_mean(**{sent: nearest})
    assert issues(api.get(f"{path}{separator}{sent}=1&strict=true")) == fields(answer.body)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("orderBy[feild]=name", did_you_mean(**{"orderBy.feild": "field"})),
        (
            "orderBy=" + quote('{"field":"name","dir":"ASC"}'),
            [("orderBy.dir", "This name is unknown. Nothing reads it.")],
        ),
        ("cursor=&page=2", [("page", PAGE_AND_CURSOR)]),
        ("page[]=1", did_you_mean(**{"page[]": "page"})),
        ("status[a]=draft&metadata[a]=b", did_you_mean(**{"status[a]": "status"})),
        ("page=2&cursor=&serach=a", [*did_you_mean(serach="search"), ("page", PAGE_AND_CURSOR)]),
    ],
)
def test_parameters_without_effect_are_warnings(api, query, expected):
    assert fields(api.get(f"{AGENTS}?{query}").body) == expected
    assert issues(api.get(f"{AGENTS}?{query}&strict=true")) == expected


def test_known_parameters_are_no_warnings(api):
    api.create()
    queries = [
        "requestContext=e30=",
        "orderBy[field]=name&orderBy[direction]=ASC&metadata[a]=b&search=x",
        "orderBy=name&sortDirection=ASC&metadata={}",
        "cursor=&perPage=5",
        "page=0&perPage=5&status=draft&ownerId=&authorId=",
        "visibility=public&favoritedOnly=true&pinFavoritedFor=x",
        "strict=false",
    ]

    assert ["warnings" in api.get(f"{AGENTS}?{query}").body for query in queries] == [False] * len(queries)


def test_the_list_of_agents_that_run_has_no_place_for_warnings(api):
    AgentFactory(id="a")

    assert "warnings" not in api.get("/api/agents?partail=true").body
    assert issues(api.get("/api/agents?partail=true&strict=true")) == did_you_mean(partail="partial")


# --- Hostile names


def test_many_and_long_names_are_cut(api):
    sent = {f"{'x' * 5000}{number}": 1 for number in range(500)}

    answer = api.post(AGENTS, {**NEW, **sent})

    warnings = answer.body["warnings"]
    assert (len(warnings), warnings[-1]["message"]) == (21, "480 more names are unknown.")
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("name", ["__proto__", "a.b", "", "日本", "\u202e", "'\"<script>"])
def test_odd_names_come_back(api, name):
    answer = api.post(AGENTS, {**NEW, name: 1})

    assert [warning["key"] for warning in answer.body["warnings"]] == [name]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("model", {"provider": "demo", "name": "echo", "temprature": 1}, "model.temprature"),
        ("defaultOptions", {"temprature": 1}, "defaultOptions.temprature"),
        ("defaultOptions", {"modelSettings": {"temprature": 1}}, "defaultOptions.modelSettings.temprature"),
    ],
)
def test_an_unknown_setting_of_a_model_is_a_warning(api, field, value, path):
    created = api.create("a", **{field: value})
    refused = api.patch(f"{agent_path('a')}?strict=true", {field: value})

    assert created.status_code == 201
    assert {"field": path, "key": "temprature", "message": "This name is unknown. Did you mean temperature?"} in (
        created.body["warnings"]
    )
    assert refused.status_code == 400
    assert path in [issue["field"] for issue in refused.body["issues"]]


def test_known_settings_of_a_model_give_no_warning(api):
    model = {"provider": "demo", "name": "echo", "temperature": 1, "topP": 0.5, "openaiReasoningEffort": "low"}
    options = {"maxSteps": 3, "telemetry": {"isEnabled": True}, "modelSettings": {"temperature": 1, "maxRetries": 2}}

    assert not api.create("a", model=model, defaultOptions=options).body.get("warnings")


@pytest.mark.parametrize(
    ("field", "value", "path", "nearest"),
    [
        ("backgroundTasks", {"disable": True}, "backgroundTasks.disable", "disabled"),
        (
            "backgroundTasks",
            {"tools": {"calculator": {"timeoutMS": 100}}},
            "backgroundTasks.tools.calculator.timeoutMS",
            "timeoutMs",
        ),
        ("knowledge", {"handbook": {"filters": {"audience": "staff"}}}, "knowledge.handbook.filters", "filter"),
        ("mcpClients", {"office": {"tool": {}}}, "mcpClients.office.tool", "tools"),
        (
            "mcpClients",
            {"office": {"tools": {"add": {"requiresApproval": True}}}},
            "mcpClients.office.tools.add.requiresApproval",
            "requireApproval",
        ),
    ],
)
def test_an_unknown_name_in_the_choices_of_tools_is_a_warning(api, field, value, path, nearest):
    """A misspelt filter or approval would have no effect, and nobody would notice."""
    expected = (path, f"This name is unknown. Did you mean {nearest}?")

    assert expected in issues(api.post(f"{AGENTS}?strict=true", {**NEW, field: value}))
    assert expected in fields(api.post(AGENTS, {**NEW, field: value}).body)


def test_known_names_in_the_choices_of_tools_give_no_warning(api):
    choice = {"enabled": True, "timeoutMs": 100, "maxRetries": 1, "disposition": "deferred", "ordered": True}
    tasks = {"disabled": False, "tools": {"calculator": choice, "word-count": False}}

    assert fields(api.post(AGENTS, {**NEW, "backgroundTasks": tasks}).body) == []
    assert fields(api.patch(agent_path("new"), {"backgroundTasks": {"tools": "all"}}).body) == []


def test_unknown_arguments_of_processors_are_warnings(api):
    @processor("shorten")
    def shorten(text: str, length: int = 100) -> str:
        return text[:length]

    choices = [{"key": "shorten", "lenght": 5}, {"id": "shorten", "length": 5}, {"key": "gone", "x": 1}]
    body = {"inputProcessors": choices, "outputProcessors": choices[:1]}
    paths = [f"{field}[0].lenght" for field in body]

    created = api.post(AGENTS, {**NEW, **body})
    refused = issues(api.patch(f"{agent_path('new')}?strict=true", body))

    expected = did_you_mean(**dict.fromkeys(paths, "length"))
    assert [warning for warning in fields(created.body) if "name" in warning[1]] == expected
    assert [issue for issue in refused if "name" in issue[1]] == expected


def test_many_unknown_arguments_are_cut(api):
    choices = [{"key": "trim-whitespace", **{f"x{number}": 1 for number in range(30)}}] * 500

    answer = api.post(AGENTS, {**NEW, "inputProcessors": choices})

    assert len(answer.body["warnings"]) == 20
