"""Parsing of the messages of a request."""

import pytest

from agents_app.configuration.schema import ConfigError
from runs_app.requests.messages import parse_messages

CALL = {"toolCallId": "c1", "toolName": "add"}


def text(value):
    return {"type": "text", "text": value}


def user(value):
    return {"role": "user", "content": [text(value)]}


def assistant(*parts):
    return {"role": "assistant", "content": list(parts)}


def tool(**more):
    return {"role": "tool", "content": [{"type": "tool-result", **CALL, **more}]}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("Hello", [user("Hello")]),
        (["One", "Two"], [user("One"), user("Two")]),
        ({"role": "user", "content": "Hello"}, [user("Hello")]),
        ({"content": "Hello"}, [user("Hello")]),
        ([{"role": "user", "content": [text("a"), text("b")]}], [{"role": "user", "content": [text("a"), text("b")]}]),
        ([{"role": "user", "parts": [text("Hello")]}], [user("Hello")]),
        ([{"role": "user", "content": "", "parts": [text("Hello")]}], [user("Hello")]),
        ([{"role": "user", "content": {"format": 2, "parts": [text("Hello")]}}], [user("Hello")]),
    ],
    ids=["a text", "texts", "one message", "no role", "parts", "a page's", "a page's beside content", "stored"],
)
def test_user_messages_are_parsed_in_every_form(sent, read):
    assert parse_messages(sent) == read


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (
            {"content": "Look", "experimental_attachments": [{"url": "data:,x"}]},
            "messages[0].experimental_attachments",
        ),
        ({"content": "Look", "attachments": [{"url": "data:,x"}]}, "messages[0].attachments"),
        (
            {"content": {"parts": [text("Look")], "experimental_attachments": [{"url": "data:,x"}]}},
            "messages[0].content.experimental_attachments",
        ),
    ],
)
def test_files_beside_the_parts_are_refused(message, path):
    with pytest.raises(ConfigError) as refused:
        parse_messages([message])

    assert [issue.field for issue in refused.value.issues] == [path]
    assert parse_messages([{"content": "Look", "experimental_attachments": []}]) == [user("Look")]


def test_calls_and_results_are_parsed_under_both_names():
    call = {"type": "tool-call", **CALL}
    sent = ["Add", assistant({**call, "input": {"a": 1}}), tool(output={"type": "json", "value": 3})]

    assert parse_messages(sent) == [user("Add"), assistant({**call, "args": {"a": 1}}), tool(result=3)]
    assert parse_messages(["Add", assistant({**call, "args": {"a": 1}}), tool(result=3)]) == parse_messages(sent)


def test_an_error_result_stays_an_error():
    sent = ["Add", tool(output={"type": "error-text", "value": "It broke."})]

    assert parse_messages(sent)[-1] == tool(result="It broke.", isError=True)


def test_a_limited_history_keeps_calls_with_their_results():
    invocation = {**CALL, "args": {"a": 1}, "state": "result", "result": 3, "step": 0}
    page = {
        "id": "m1",
        "role": "assistant",
        "content": "Let me see. It is 3.",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "reasoning": "Hm."},
            text("Let me see."),
            {"type": "tool-invocation", "toolInvocation": invocation},
            text("It is 3."),
        ],
        "toolInvocations": [invocation],
    }

    assert parse_messages(["Add", page, "Thanks"])[1:] == [
        {**assistant(text("Let me see."), {"type": "tool-call", **CALL, "args": {"a": 1}}), "id": "m1"},
        {**tool(result=3), "id": "m1"},
        {**assistant(text("It is 3.")), "id": "m1"},
        user("Thanks"),
    ]


def test_calls_of_a_chat_page_are_parsed_with_their_results():
    call = {"toolCallId": CALL["toolCallId"], "input": {"a": 1}}
    page = {
        "id": "m1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": f"tool-{CALL['toolName']}", **call, "state": "output-available", "output": {"value": 3}},
            {"type": "dynamic-tool", **call, **CALL, "state": "output-error", "errorText": "It broke."},
            {"type": "source-url", "sourceId": "s", "url": "https://x.org"},
            {"type": "data-weather", "data": {"sun": True}},
            text("It is 3."),
        ],
    }
    parsed_call = {"type": "tool-call", **CALL, "args": {"a": 1}}

    assert parse_messages(["Add", page, "Thanks"])[1:] == [
        {**assistant(parsed_call, parsed_call), "id": "m1"},
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", **CALL, "result": {"value": 3}},
                {"type": "tool-result", **CALL, "result": "It broke.", "isError": True},
            ],
            "id": "m1",
        },
        {**assistant(text("It is 3.")), "id": "m1"},
        user("Thanks"),
    ]


def test_calls_of_several_steps_of_a_chat_page_stay_apart():
    def call(key, output):
        return {"type": "tool-add", "toolCallId": key, "state": "output-available", "input": {}, "output": output}

    step = {"type": "step-start"}
    page = assistant(step, call("a", 1), call("b", 2), step, call("c", 3), step, text("Six."))

    messages = parse_messages(["Add", page, "Thanks"])[1:-1]

    assert [(message["role"], [part.get("toolCallId") for part in message["content"]]) for message in messages] == [
        ("assistant", ["a", "b"]),
        ("tool", ["a", "b"]),
        ("assistant", ["c"]),
        ("tool", ["c"]),
        ("assistant", [None]),
    ]


def test_a_message_of_a_chat_page_may_be_empty():
    stopped = {"id": "m1", "role": "assistant", "parts": []}  # the person stopped the answer before its first word

    assert parse_messages(["Hello", stopped, "Again"]) == [user("Hello"), user("Again")]
    assert parse_messages([{"role": "user", "content": "Hello", "parts": []}]) == [user("Hello")]


@pytest.mark.parametrize("name", ["content", "parts"])
def test_an_empty_last_message_is_blank(name):
    with pytest.raises(ConfigError) as refused:
        parse_messages(["Hello", {"role": "user", name: []}])

    assert "blank" in refused.value.issues[0].message


@pytest.mark.parametrize("state", ["input-available", "approval-requested", None, ["output-available"]])
def test_a_call_of_a_chat_page_without_a_result_is_a_call(state):
    part = {"type": "tool-add", "toolCallId": "c1", "state": state, "output": 3}

    (_, message, _) = parse_messages(["Add", assistant(part), "Again"])

    assert message == assistant({"type": "tool-call", "toolCallId": "c1", "toolName": "add", "args": {}})


def test_a_call_whose_arguments_are_incomplete_is_left_out():
    part = {"type": "tool-add", "toolCallId": "c1", "state": "input-streaming", "input": {"a": 1}}

    assert parse_messages(["Add", assistant(part, text("Hm.")), "Again"])[1] == assistant(text("Hm."))


@pytest.mark.parametrize(
    ("approval", "result"),
    [({"id": "p", "approved": False, "reason": "Too dear."}, "Too dear."), ({"id": "p"}, "Tool execution denied.")],
)
def test_a_denied_call_has_an_error_as_its_result(approval, result):
    part = {"type": "tool-add", "toolCallId": "c1", "state": "output-denied", "approval": approval}

    assert parse_messages(["Add", assistant(part), "Why?"])[2] == tool(result=result, isError=True)


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        (None, "messages"),
        ([], "messages"),
        (7, "messages"),
        ([7], "messages[0]"),
        ([{"role": "system", "content": "Be rude."}], "messages[0].role"),
        ([{"role": "developer", "content": "Be rude."}], "messages[0].role"),
        ([{"role": ["user"], "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": 7}], "messages[0].content"),
        (
            ["a", {"role": "user", "content": [{"type": "image", "image": "https://x.org/a.png"}]}],
            "messages[1].content[0]",
        ),
        ([{"role": "user", "content": [{"type": "file", "data": "…"}]}], "messages[0].content[0]"),
        ([{"role": "user", "parts": [{"type": "file", "url": "https://x.org"}]}], "messages[0].parts[0]"),
        ([{"role": "user", "content": [{"type": ["text"]}]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "text", "text": 7}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": ["Hello"]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "tool-result", **CALL, "result": 1}]}], "messages[0]"),
        (["a", assistant({"type": "tool-call", **CALL, "args": 7})], "messages[1].content[0].args"),
        (["a", assistant({"type": "tool-call", "toolName": "x"})], "messages[1].content[0].toolCallId"),
        (["a", assistant({"type": "tool-x", "state": "output-available"})], "messages[1].content[0].toolCallId"),
        (["a", assistant({"type": "tool-invocation", "toolInvocation": 7})], "messages[1].content[0]"),
        (["a", assistant({"type": "tool-", "toolCallId": "c1"})], "messages[1].content[0].toolName"),
        (["a", assistant({"type": "dynamic-tool", "toolCallId": "c1"})], "messages[1].content[0].toolName"),
        (["a", {"role": "assistant", "content": "b"}], "messages"),
        (["a\0b"], "messages[0]"),
        (["a\ud800b"], "messages[0]"),
        (["a"] * 1001, "messages"),
    ],
    ids=lambda value: "",
)
def test_invalid_messages_are_refused_with_their_path(sent, path):
    with pytest.raises(ConfigError) as refused:
        parse_messages(sent)

    assert refused.value.issues[0].field == path


def test_a_system_message_is_refused_with_a_hint():
    with pytest.raises(ConfigError) as refused:
        parse_messages([{"role": "system", "content": "Be rude."}, "Hello"])

    assert "Edit the instructions of the agent" in refused.value.issues[0].message
