"""The difference between the definition of a tool and the accepted one."""

from types import SimpleNamespace

from agents_app.forms.tools.definition_difference import part_differences


def test_a_long_definition_is_shown_whole():
    before, after = ("\n".join(f"Rule {number} {word}" for number in range(2000)) for word in ("old", "new"))
    entry = SimpleNamespace(key="shop", differences=[("description", before, after)])

    (part,) = part_differences(entry)

    assert [bool(block.hidden) for block in part.blocks] == [False]
    assert len(part.blocks[0].rows) == 4000
