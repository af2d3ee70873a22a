"""The rules of variants: twelve operators, groups, facts and claims."""

import pytest

from agents_app.configuration.variants import RULE_OPERATORS, choose_variants, condition_holds


@pytest.mark.parametrize(
    ("operator", "actual", "expected", "is_true"),
    [
        ("equals", "pro", "pro", True),
        ("equals", 1, True, False),
        ("equals", [1], [True], False),
        ("equals", {"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ("not_equals", "pro", "free", True),
        ("contains", ["editor", "viewer"], "editor", True),
        ("contains", "enterprise", "prise", True),
        ("contains", 7, 7, False),
        ("not_contains", ["editor"], "manager", True),
        ("greater_than", 3, 2, True),
        ("greater_than", "3", 2, False),
        ("less_than", "a", "b", True),
        ("greater_than_or_equal", 2, 2, True),
        ("less_than_or_equal", 3, 2, False),
        ("in", "pro", ["pro", "enterprise"], True),
        ("in", [0], [[False]], False),
        ("in", None, ["pro"], False),
        ("not_in", "free", ["pro"], True),
        ("exists", False, None, True),
        ("exists", None, None, False),
        ("not_exists", None, None, True),
    ],
)
def test_an_operator_compares_a_fact_with_a_value(operator, actual, expected, is_true):
    assert condition_holds(operator, actual, expected) is is_true
    assert operator in RULE_OPERATORS


def test_there_are_twelve_operators():
    assert len(RULE_OPERATORS) == 12


def configuration(rules, **more):
    return {"conditional": {"model": [{"value": {}, "rules": rules}]}, **more}


def test_groups_of_conditions_can_be_nested():
    either = {"operator": "OR", "conditions": [condition("tier", "pro"), condition("plan.name", "gold")]}
    rules = {"operator": "AND", "conditions": [either, condition("owner", "support")]}

    assert choose_variants(configuration(rules), {"plan": {"name": "gold"}, "owner": "support"}, {}) == {"model": 0}
    assert choose_variants(configuration(rules), {"tier": "pro", "owner": "sales"}, {}) == {}


def condition(field, value):
    return {"field": field, "operator": "equals", "value": value}


def test_the_first_variant_that_holds_is_chosen():
    rules = {"operator": "AND", "conditions": [{"field": "tier", "operator": "exists"}]}
    variants = [{"value": 1, "rules": {"operator": "AND", "conditions": [condition("tier", "x")]}}]
    variants += [{"value": 2, "rules": rules}, {"value": 3, "rules": rules}]

    assert choose_variants({"conditional": {"tools": variants}}, {"tier": "pro"}, {}) == {"tools": 1}


def test_a_claim_counts_only_if_the_agent_names_it_and_facts_win():
    rules = {"operator": "AND", "conditions": [condition("tier", "pro")]}

    assert choose_variants(configuration(rules), {}, {"tier": "pro"}) == {}
    assert choose_variants(configuration(rules, contextKeys=["tier"]), {}, {"tier": "pro"}) == {"model": 0}
    assert choose_variants(configuration(rules, contextKeys=["tier"]), {"tier": "free"}, {"tier": "pro"}) == {}
    by_plan = configuration(
        {"operator": "AND", "conditions": [condition("plan.name", "gold")]}, contextKeys=["plan.name"]
    )
    assert choose_variants(by_plan, {"plan": {"name": "free"}}, {"plan.name": "gold"}) == {}
    assert choose_variants(by_plan, {}, {"plan.name": "gold"}) == {"model": 0}
