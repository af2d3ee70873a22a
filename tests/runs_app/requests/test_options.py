"""Options of requests and default options of agents."""

import pytest

from agentcms.wire.validation import TOO_BIG_MESSAGE
from agents_app.configuration.schema import ConfigError
from runs_app.requests.options import max_steps, merge_options, model_settings, parse_default_options, parse_options


def test_options_are_parsed_under_their_wire_names():
    options = parse_options({"temperature": 1, "topP": 0.5, "maxSteps": 3, "seed": None, "messages": []})

    assert options == {"temperature": 1, "topP": 0.5, "maxSteps": 3}


def test_options_in_model_settings_are_parsed():
    options = parse_options({"modelSettings": {"temperature": 0.2, "maxOutputTokens": 50}, "temperature": 0.9})

    assert options == {"temperature": 0.9, "maxTokens": 50}


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"temperature": "hot"}, "temperature", "This must be a number."),
        ({"temperature": True}, "temperature", "This must be a number."),
        ({"temperature": 3}, "temperature", "This must be less than or equal to 2."),
        ({"maxSteps": 0}, "maxSteps", "This must be greater than or equal to 1."),
        ({"maxSteps": 2.5}, "maxSteps", "This must be a whole number."),
        ({"seed": 1e20}, "seed", TOO_BIG_MESSAGE),
        ({"stopSequences": ["end", 1]}, "stopSequences[1]", "This must be a text."),
        ({"activeTools": "search"}, "activeTools", "This must be a list."),
        ({"modelSettings": {"topP": 3}}, "modelSettings.topP", "This must be less than or equal to 1."),
        ({"modelSettings": 3}, "modelSettings", "This must be an object."),
    ],
)
def test_an_invalid_option_is_refused_with_its_path(body, field, message):
    with pytest.raises(ConfigError) as refused:
        parse_options(body)

    assert refused.value.issues == [(field, message)]


@pytest.mark.parametrize("choice", ["auto", "none", "required", {"type": "tool", "toolName": "search"}])
def test_tool_choice_can_be_auto_none_or_required(choice):
    assert parse_options({"toolChoice": choice}) == {"toolChoice": choice}


@pytest.mark.parametrize("choice", ["maybe", {"type": "tool"}, {"type": "tool", "toolName": 3}, 7])
def test_an_unknown_tool_choice_is_refused(choice):
    with pytest.raises(ConfigError) as refused:
        parse_options({"toolChoice": choice})

    assert refused.value.issues == [
        ("toolChoice", 'This must be "auto", "none", "required" or {"type": "tool", "toolName": …}.')
    ]


def test_unusable_stored_options_are_omitted_with_a_warning():
    options, issues = parse_default_options({"temperature": "hot", "modelSettings": {"topP": 3, "topK": 4}, "seed": 7})

    assert options == {"topK": 4, "seed": 7}
    assert [issue.field for issue in issues] == ["temperature", "modelSettings.topP"]


def test_options_of_a_call_override_stored_options():
    merged = merge_options({"temperature": 0.2, "seed": 1}, {"temperature": 0.9})

    assert model_settings({**merged, "maxTokens": 5, "toolChoice": "none"}) == {
        "temperature": 0.9,
        "seed": 1,
        "max_tokens": 5,
    }


def test_the_server_limits_the_steps(settings):
    settings.RUN_MAX_STEPS = 4

    assert max_steps({}) == 4
    assert max_steps({"maxSteps": 2}) == 2
    assert max_steps({"maxSteps": 100}) == 4
