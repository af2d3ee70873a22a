"""The page with the runs of one agent."""

from django.urls import reverse

from tests.factories import AgentFactory
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text


def page(client, agent, /, **query):
    return client.get(reverse("runs:of_agent", args=[agent.pk]), query)


def questions(response):
    return [row.run.question for row in response.context["listing"].rows]


def test_only_runs_of_the_agent_are_listed(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, prompt="Mine")
    RunFactory(agent=AgentFactory(id="other"), requested_by=ann, prompt="Of another agent")
    RunFactory(agent=agent, prompt="Of a colleague")

    assert questions(page(editor, agent)) == ["Mine"]
    assert questions(page(editor, agent, agent="other")) == ["Mine"]


def test_the_runs_are_filtered_by_version(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, version_number=1, prompt="Old")
    RunFactory(agent=agent, requested_by=ann, version_number=2, prompt="New")

    response = page(editor, agent, version="1")

    assert questions(response) == ["Old"]
    assert "Version v1" in page_text(response)
    assert "Agent other" not in page_text(response)


def test_an_agent_without_runs_leads_to_the_playground(editor, agent):
    response = page(editor, agent)

    assert "No runs yet" in page_text(response)
    assert f'href="{reverse("runs:playground", args=[agent.pk])}"' in response.content.decode()


def test_a_run_has_the_header_of_its_agent(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann)

    html = editor.get(reverse("runs:view", args=[run.pk])).content.decode()

    assert '<nav class="tabs titlebar-tabs" aria-label="Agent">' in html
    assert f'<a href="{reverse("runs:of_agent", args=[agent.pk])}" aria-current="page">Runs</a>' in html


def test_the_filter_stands_beside_the_tabs(editor, ann, agent):
    RunFactory(agent=agent, requested_by=ann, prompt="Mine")

    html = page(editor, agent).content.decode()

    bar = html.index('class="filter-bar"')
    assert bar < html.index("Usage</a>") < html.index("</details>", bar)
