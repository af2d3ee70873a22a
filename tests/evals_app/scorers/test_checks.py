"""Checks and trajectories: scores without a model."""

import asyncio
import time
from dataclasses import replace

import pytest

from evals_app.scorers.built_in import exact
from evals_app.scorers.kinds.checks import score_by_check
from evals_app.scorers.kinds.trajectory import score_trajectory
from evals_app.scorers.results import Answer, NotScorable, ScorerError, ToolUse
from evals_app.scorers.settings import settings_of
from evals_app.scorers.snapshots import score_by_snapshot

REFUND = ToolUse("refund", {"order": "A1", "amount": 5}, "Done")
SEARCH = ToolUse("search", {"query": "A1"}, "Found")
FAILED = ToolUse("mail", {}, "No server", is_error=True)
ANSWER = Answer(
    "Refund A1",
    "The order A1 was refunded.",
    "Refunded order A1.",
    calls=(SEARCH, REFUND),
    steps=3,
    seconds=2.5,
    cost=0.02,
)


@pytest.mark.parametrize(
    ("config", "score"),
    [
        ({"check": "includes", "value": "ORDER a1"}, 1),
        ({"check": "includes", "value": "ORDER a1", "caseSensitive": True}, 0),
        ({"check": "includes", "values": ["order", "invoice"]}, 0.5),
        ({"check": "equals", "value": "the order A1 was refunded."}, 1),
        ({"check": "equals"}, 0),
        ({"check": "matches", "pattern": r"order [A-Z]\d"}, 1),
        ({"check": "matches", "pattern": r"^refunded"}, 0),
        ({"check": "json-schema", "schema": {"type": "object"}}, 0),
        ({"check": "called-tool", "tool": "refund"}, 1),
        ({"check": "called-tool", "tool": "refund", "times": 2}, 0),
        ({"check": "called-tool", "tool": "refund", "times": 0}, 0),
        ({"check": "called-tool", "tool": "refund", "arguments": {"order": "A1"}}, 1),
        ({"check": "called-tool", "tool": "refund", "arguments": {"order": "B2"}}, 0),
        ({"check": "no-tool-errors"}, 1),
        ({"check": "max-steps", "max": 3}, 1),
        ({"check": "max-steps", "max": 2}, 0),
        ({"check": "max-seconds", "max": 2}, 0),
        ({"check": "max-cost", "max": 0.05}, 1),
    ],
)
def test_a_check_scores_an_answer(config, score):
    assert score_by_check(config, ANSWER).score == score


def test_a_share_of_words_that_is_just_enough_is_enough():
    """Although 1 - 0.8 is less than 0.2 in binary."""
    config = {"check": "includes", "values": ["order", "v", "w", "x", "y"], "passThreshold": 0.2}

    result = score_by_check(config, replace(ANSWER, output="order"))

    assert (result.score, result.label) == (0.2, "pass")


def test_a_failed_call_fails_the_check_of_tools():
    result = score_by_check({"check": "no-tool-errors"}, Answer("", "", calls=(FAILED,)))

    assert (result.score, result.label, result.reason) == (0, "fail", "Failed: mail.")


@pytest.mark.parametrize(("expected", "score"), [(True, 1), (1, 0)])
def test_the_arguments_of_a_call_tell_true_from_1(expected, score):
    answer = replace(ANSWER, calls=(ToolUse("refund", {"urgent": True}, "Done"),))
    config = {"check": "called-tool", "tool": "refund", "arguments": {"urgent": expected}}

    assert score_by_check(config, answer).score == score


def test_reasons_count_in_words():
    one = replace(ANSWER, calls=ANSWER.calls[:1])

    assert score_by_check({"check": "called-tool", "tool": "search"}, one).reason == "The tool was called 1 time."
    assert score_by_check({"check": "called-tool", "tool": "b"}, one).reason == "The tool was called 0 times."
    assert score_by_check({"check": "max-steps", "max": 2}, one).reason == "3 of at most 2 steps."
    assert score_by_check({"check": "max-cost", "max": 0.01}, one).reason == "$0.02 of at most $0.01."
    assert score_trajectory({"maxSteps": 0}, one).reason == "1 call, at most 0 are allowed."


def test_similarity_compares_with_the_ground_truth():
    assert 0.2 < score_by_check({"check": "similarity"}, ANSWER).score < 1
    assert score_by_check({"check": "similarity", "value": ANSWER.output}, ANSWER).score == 1


@pytest.mark.parametrize("check", ["equals", "includes", "similarity", None])
def test_an_object_equals_its_ground_truth_whatever_the_order_of_its_keys_is(check):
    answer = Answer("", {"room": 12, "Beds": [{"a": None, "b": 1.0}]}, {"Beds": [{"b": 1, "a": None}], "room": 12})
    other = replace(answer, output={"room": 13, "Beds": []})

    scores = [
        score_by_check({"check": check}, one).score if check else exact(one.output, one.ground_truth)
        for one in (answer, other)
    ]

    assert scores[0] == 1
    assert scores[1] < 1


def test_a_json_answer_is_validated():
    config = {"check": "json-schema", "schema": {"type": "object", "required": ["total"]}}

    assert score_by_check(config, Answer("", '{"total": 1}')).score == 1
    assert "total" in score_by_check(config, Answer("", "{}")).reason


@pytest.mark.parametrize("config", [{"check": "equals"}, {"check": "max-cost", "max": 1}])
def test_an_answer_without_what_is_compared_is_not_scorable(config):
    with pytest.raises(NotScorable):
        score_by_check(config, Answer("", "Hello"))


def test_a_pattern_takes_linear_time():
    assert score_by_check({"check": "matches", "pattern": "^(a+)+$"}, Answer("", "a" * 50_000 + "b")).score == 0


@pytest.mark.parametrize(
    ("mode", "expected", "score"),
    [
        ("strict", ["search", "refund"], 1),
        ("strict", ["refund", "search"], 0),
        ("strict", ["search"], 0.5),
        ("relaxed", ["refund"], 1),
        ("relaxed", ["search", "refund"], 1),
        ("relaxed", ["refund", "search"], 0.5),
        ("relaxed", ["search", "mail", "refund", "mail"], 0.5),
        ("relaxed", [], 1),
        ("unordered", ["refund", "search"], 1),
        ("unordered", ["refund", "mail"], 0.5),
        ("subset", ["refund", "search", "mail"], 1),
        ("subset", ["refund"], 0.5),
        ("superset", ["refund"], 1),
        ("superset", ["refund", "mail"], 0.5),
    ],
)
def test_a_trajectory_compares_the_calls(mode, expected, score):
    assert score_trajectory({"mode": mode, "expected": expected}, ANSWER).score == score


@pytest.mark.parametrize(
    ("ordering", "steps", "score"),
    [
        ("strict", ["refund"], 0),
        ("relaxed", ["refund"], 1),
        ("relaxed", ["refund", "search"], 0.5),
        ("unordered", ["refund", "search"], 1),
        ("unordered", ["refund"], 1),
        ("guessed", ["refund"], 0),
        (None, ["search", "refund"], 1),
    ],
)
def test_the_expected_trajectory_says_how_it_is_compared_unless_the_scorer_does(ordering, steps, score):
    expected = {"steps": [{"name": step} for step in steps], "ordering": ordering}
    answer = replace(ANSWER, expected_trajectory=expected)

    assert score_trajectory({}, answer).score == score
    assert score_trajectory({"mode": "subset"}, answer).score == len(steps) / 2


def test_arguments_are_compared_on_request():
    steps = [{"toolName": "search", "args": {"query": "A1"}}, {"toolName": "refund", "args": {"order": "B2"}}]

    assert score_trajectory({"expected": steps}, ANSWER).score == 1
    assert score_trajectory({"expected": steps, "arguments": "compare"}, ANSWER).score == 0.5


@pytest.mark.parametrize(
    ("mode", "expected", "score"),
    [
        ("strict", ["search", "refund"], 1),
        ("strict", [{"name": "search"}, {"name": "refund", "args": None}], 1),
        ("strict", ["search", {"toolName": "refund", "args": {}}], 0.5),
        ("strict", ["refund", "search"], 0),
        ("unordered", ["refund", {"toolName": "search", "args": {"query": "A1"}}], 1),
        ("unordered", ["search", {"toolName": "search", "args": {"query": "A1"}}], 0.5),
        ("unordered", ["search", {"toolName": "search", "args": {"query": "B2"}}], 0.5),
        ("subset", ["refund", "search", "mail"], 1),
        ("superset", ["refund"], 1),
        ("superset", ["refund", "refund"], 0.5),
        ("superset", [{"name": "search", "toolArgs": {"query": "A1"}}], 1),
        ("superset", [{"name": "search", "toolArgs": {"query": "B2"}}], 0),
    ],
)
def test_a_step_that_names_no_arguments_matches_a_call_with_any(mode, expected, score):
    config = {"mode": mode, "expected": expected, "arguments": "compare"}

    assert score_trajectory(config, ANSWER).score == score


@pytest.mark.parametrize("order", [1, -1])
def test_a_step_with_arguments_comes_before_one_that_allows_any(order):
    """Otherwise the open step could take the only call that the other one matches."""
    again = ToolUse("search", {"query": "B2"}, "Found")
    steps = ["search", {"toolName": "search", "args": {"query": "A1"}}]
    config = {"mode": "unordered", "expected": steps[::order], "arguments": "compare"}

    result = score_trajectory(config, Answer("", "", calls=(SEARCH, again)[::order]))

    assert (result.score, result.details["missing"], result.details["unexpected"]) == (1, [], [])


NESTED = Answer(
    "",
    "",
    calls=(
        ToolUse("agent-helper", {"prompt": "6*7"}, "It is 42."),
        ToolUse("calculator", {"expression": "6*7"}, 42, depth=1),
        ToolUse("current-time", {}, "12:00"),
    ),
)
HELPER_RUN = {"stepType": "agent_run", "name": "helper", "children": ["calculator"]}


@pytest.mark.parametrize(
    ("helper", "score"),
    [
        ({}, 1 / 3),  # without `children`, all calls stand in one row
        ({"children": None}, 1 / 3),
        ({"children": ["calculator"]}, 1),
        ({"children": {"steps": ["calculator"], "ordering": "strict"}}, 1),
        ({"children": {"steps": [], "ordering": "relaxed"}}, 1),
        ({"children": [HELPER_RUN]}, 1),
        ({"children": []}, 0.5),
        ({"children": ["current-time"]}, 0.5),
        ({"children": ["calculator", "calculator"]}, 0.5),
        ({"children": [{"name": "calculator", "children": ["current-time"]}]}, 0.5),
        ({"children": [{"name": "calculator", "toolResult": 42}]}, 1),
        ({"children": [{"name": "calculator", "toolResult": 43}]}, 0.5),
    ],
)
def test_the_calls_of_a_sub_agent_are_compared_inside_of_its_step(helper, score):
    steps = [{"name": "agent-helper", **helper}, "current-time"]

    assert score_trajectory({"expected": steps, "arguments": "compare"}, NESTED).score == pytest.approx(score)


@pytest.mark.parametrize("calls", [(), (ToolUse("agent-helper", {}, "It is 42."),)], ids=["agent", "sub-agent"])
def test_the_steps_of_a_sub_agent_are_missing_where_nothing_was_called(calls):
    helper = {"name": "agent-helper", "children": [{"name": "agent-editor", "children": ["calculator"]}]}

    result = score_trajectory({"expected": [helper]}, Answer("", "", calls=calls))

    assert (result.score, result.details["missing"]) == (0, ["agent-helper"])


@pytest.mark.parametrize(("result", "score"), [("Found", 1), ("Lost", 0), (None, 1)])
@pytest.mark.parametrize("name", ["result", "toolResult"])
def test_results_are_compared_with_the_arguments(name, result, score):
    config = {"mode": "superset", "expected": [{"toolName": "search", name: result}]}
    answer = Answer("", "", calls=(replace(SEARCH, result="Found"),))

    assert score_trajectory({**config, "arguments": "compare"}, answer).score == score
    assert score_trajectory(config, answer).score == 1


def test_of_steps_that_match_in_several_ways_as_many_as_possible_match():
    calls = (ToolUse("search", {"query": "A1"}, "Found"), ToolUse("search", {"query": "A1"}, "Lost"))
    steps = [{"name": "search", "args": {"query": "A1"}}, {"name": "search", "result": "Found"}]
    config = {"mode": "unordered", "expected": steps, "arguments": "compare"}

    result = score_trajectory(config, Answer("", "", calls=calls))

    assert (result.score, result.details["missing"], result.details["unexpected"]) == (1, [], [])


def test_many_more_steps_than_calls_are_compared_quickly():
    answer = Answer("", "", calls=(ToolUse("search", {}),) * 500)
    started = time.process_time()

    assert score_trajectory({"mode": "unordered", "expected": ["search"] * 2000}, answer).score == 0.25

    assert time.process_time() - started < 5


def test_very_many_steps_are_not_compared():
    steps = [{"name": "search", "children": ["calculator"] * 999}] * 600
    started = time.process_time()

    with pytest.raises(NotScorable, match="600,000 expected steps and 2 calls are too many to compare"):
        score_trajectory({"expected": steps}, ANSWER)
    assert score_trajectory({"mode": "superset", "expected": ["search"] * 500_000}, ANSWER).score < 1

    assert time.process_time() - started < 10


def test_limits_and_forbidden_tools_fail_a_trajectory():
    assert score_trajectory({"maxSteps": 1}, ANSWER).score == 0
    assert score_trajectory({"maxSteps": 0}, ANSWER).reason == "2 calls, at most 0 are allowed."
    assert score_trajectory({"maxSteps": 0}, Answer("", "")).score == 1
    result = score_trajectory({"forbiddenTools": ["refund"]}, ANSWER)
    assert (result.score, result.label, result.reason) == (0, "fail", "A forbidden tool was called: refund.")


FAILED_CALL = ToolUse("search", {"q": "a"}, is_error=True)
TWICE = ToolUse("search", {"q": "b"})


@pytest.mark.parametrize(
    ("limits", "calls", "reason"),
    [
        ({"noRedundantCalls": True}, [TWICE, TWICE], "Called again with the same arguments: search."),
        ({"noRedundantCalls": True}, [TWICE, FAILED_CALL, TWICE], ""),
        ({"allowRepeatedSteps": False}, [TWICE, ToolUse("refund", {}), TWICE], "Called more than once: search."),
        ({"maxRetriesPerTool": 1}, [FAILED_CALL, FAILED_CALL, TWICE], "Retried too often: search."),
        ({"maxRetriesPerTool": 2}, [FAILED_CALL, FAILED_CALL, TWICE], ""),
        ({"maxRetriesPerTool": 0}, [TWICE, TWICE], ""),
        ({"maxRetriesPerTool": 0}, [FAILED_CALL], ""),
        ({"maxTotalTokens": 99}, [], "100 tokens, at most 99 are allowed."),
        ({"maxTotalTokens": 100}, [], ""),
        ({"maxTotalDurationMs": 1400}, [], "1500 milliseconds, at most 1400 are allowed."),
        ({"maxTotalDurationMs": 1500}, [], ""),
    ],
)
def test_the_limits_of_an_expected_trajectory_hold(limits, calls, reason):
    answer = Answer("", "", expected_trajectory=limits, calls=tuple(calls), seconds=1.5, tokens=100)

    result = score_trajectory({}, answer)

    assert (result.score, result.reason) == (float(not reason), reason)


def test_a_limit_of_unknown_tokens_is_not_scorable():
    with pytest.raises(NotScorable, match="The tokens of this answer are not known"):
        score_trajectory({}, Answer("", "", expected_trajectory={"maxTotalTokens": 5}))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"maxSteps": 1}, "2 calls, at most 1 are allowed."),
        ({"blacklistedTools": ["refund"]}, "A forbidden tool was called: refund."),
        ({"blacklistedSequences": [["search", "refund"]]}, "Forbidden calls one after another: search, refund."),
    ],
)
def test_limits_of_an_expected_trajectory_count_with_those_of_the_scorer(limits, reason):
    allowed = {"maxSteps": 2, "blacklistedTools": ["pay"], "blacklistedSequences": [["refund", "search"], []]}
    steps = {"steps": ["search", "refund"]}

    for given in (limits, {**steps, **limits}):
        result = score_trajectory({"maxSteps": 5}, replace(ANSWER, expected_trajectory=given))
        assert (result.score, result.reason) == (0, reason)
    assert score_trajectory({"maxSteps": 1}, replace(ANSWER, expected_trajectory=allowed)).score == 0
    assert score_trajectory({}, replace(ANSWER, expected_trajectory={**steps, **allowed})).score == 1
    assert score_trajectory({}, replace(ANSWER, expected_trajectory=allowed)).score == 1


def test_an_expected_step_may_say_whether_its_call_succeeds():
    failed = Answer("", "", calls=(ToolUse("search", {}, "No.", is_error=True),))

    for success, score in ((True, 0), (False, 1), ("no", 1)):
        config = {"expected": [{"name": "search", "success": success}]}
        assert score_trajectory({**config, "arguments": "compare"}, failed).score == score
        assert score_trajectory(config, failed).score == 1


def test_settings_of_a_judge_do_not_replace_its_record():
    judge = {
        "type": "llm-judge",
        "name": "J",
        "instructions": "A",
        "presetConfig": {"instructions": "B", "check": "x"},
    }
    check = {"type": "check", "name": "C", "presetConfig": {"check": "equals", "schema": {}, "instructions": "B"}}

    assert settings_of(judge) == {}
    assert settings_of(check) == {"check": "equals", "schema": {}}


def test_expected_steps_come_from_the_item():
    answer = Answer("", "", expected_trajectory={"steps": ["search"]}, calls=(SEARCH,))

    assert score_trajectory({}, answer).score == 1


def test_a_schema_asks_no_other_server_and_has_a_limited_time():
    for schema, reason in (
        ({"$ref": "http://127.0.0.1:9/schema"}, "not part of it"),
        ({"$defs": {"a": {"allOf": [{"items": {"$ref": "#/$defs/a"}}] * 2}}, "$ref": "#/$defs/a"}, "too many steps"),
    ):
        with pytest.raises(ScorerError, match=reason):
            score_by_check({"check": "json-schema", "schema": schema}, Answer("q", "[" * 20 + "]" * 20))


def test_settings_that_are_null_are_the_default():
    snapshot = {"type": "check", "passThreshold": None, "presetConfig": {"check": "called-tool", "tool": "refund"}}
    snapshot["presetConfig"] |= {"times": None, "arguments": None}

    result = asyncio.run(score_by_snapshot(snapshot, ANSWER))

    assert (result.score, result.label, result.error) == (1.0, "pass", "")


def test_long_texts_are_not_compared_for_similarity():
    started = time.process_time()

    with pytest.raises(NotScorable, match="too long to compare"):
        score_by_check({"check": "similarity", "value": "ab" * 250_000}, replace(ANSWER, output="ba" * 250_000))

    assert time.process_time() - started < 1
    assert (
        score_by_check({"check": "similarity", "value": "ab" * 20_000}, replace(ANSWER, output="ab" * 20_000)).score
        == 1
    )


def test_an_answer_that_is_nested_too_deeply_is_no_json():
    result = score_by_check({"check": "json-schema", "schema": {}}, replace(ANSWER, output="[" * 100_000))

    assert (result.score, result.reason) == (0, "The answer is not JSON.")
