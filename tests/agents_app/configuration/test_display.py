"""Configurations in words."""

from agents_app.configuration.display import MAX_DISPLAYED_FACTS, config_sections


def section_of(**configuration):
    (section,) = config_sections(configuration)
    return section.kind, section.value


def test_variables_have_types_defaults_and_descriptions():
    schema = {
        "properties": {
            "agent_name": {"type": "string", "default": "a colleague", "description": "Who checks it."},
            "anything": True,
        },
        "required": ["anything"],
    }

    assert section_of(requestContextSchema=schema) == (
        "members",
        [
            ("agent_name", 'string, optional, default "a colleague": Who checks it.'),
            ("anything", "any type, required"),
        ],
    )


def test_scorers_say_which_answers_they_score():
    scorers = {
        "all": {},
        "some": {"sampling": {"type": "ratio", "rate": 0.005}},
        "cites-source": {"sampling": {"type": "count", "count": 2}},
    }

    assert section_of(scorers=scorers) == (
        "members",
        [("all", "Every answer"), ("some", "0.5 % of the answers"), ("cites-source", "One in every 2 answers")],
    )


def test_members_have_paths_and_many_are_json():
    metadata = {"tags": ["customers", "night"], "team": {"size": 3}, "language": "en"}

    assert section_of(metadata=metadata) == (
        "members",
        [("tags", "customers, night"), ("team.size", "3"), ("language", "en")],
    )
    assert section_of(metadata={str(number): number for number in range(MAX_DISPLAYED_FACTS + 1)})[0] == "json"
