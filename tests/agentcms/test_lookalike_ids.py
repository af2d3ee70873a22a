"""IDs that look like other ones."""

import pytest

from agentcms.lookalike_ids import derive_clear_id, describe_ambiguity

AMBIGUOUS = {
    "cafe\u0301": "Character 4 is not in the Unicode normal form NFKC. Write 'caf\u00e9' instead.",
    "\ufb01le": "Character 1 is not in the Unicode normal form NFKC. Write 'file' instead.",
    "agent\uff11": "Character 6 is not in the Unicode normal form NFKC. Write 'agent1' instead.",
    "\u212bngstrom": "Character 1 is not in the Unicode normal form NFKC. Write '\u00c5ngstrom' instead.",
    "\u0430gent": (
        "Character 1, '\u0430' (cyrillic small letter a), is among Latin letters. Use letters of one script."
    ),
    "ag\u0435nt-7": (
        "Character 3, '\u0435' (cyrillic small letter ie), is among Latin letters. Use letters of one script."
    ),
    "p\u03bfrter": (
        "Character 2, '\u03bf' (greek small letter omicron), is among Latin letters. Use letters of one script."
    ),
    "\u043f\u043e\u0440\u0442\u044ce": (
        "Character 6, 'e' (latin small letter e), is among Cyrillic letters. Use letters of one script."
    ),
}


@pytest.mark.parametrize(("agent_id", "message"), AMBIGUOUS.items())
def test_an_id_that_looks_like_another_one_is_described(agent_id, message):
    assert describe_ambiguity(agent_id) == message


CLEAR = [
    "agent-1",
    "caf\u00e9",
    "\u043f\u043e\u0440\u0442\u044c\u0435-7",
    "\u03b1\u03b2\u03b3",
    "\u5ba2\u4eba",
    "\U0001f600 a",
    "a b",
    "\u0e2a\u0e27",
]


@pytest.mark.parametrize("agent_id", CLEAR)
def test_other_ids_are_not_described(agent_id):
    assert describe_ambiguity(agent_id) == ""


@pytest.mark.parametrize(
    ("agent_id", "derived"),
    [("porter", "porter"), ("\ufb01le", "file"), ("\u0430gent", "agent"), ("a\uff0fb", "agent")],
)
def test_a_clear_id_is_derived(agent_id, derived):
    assert derive_clear_id(agent_id, "agent") == derived
