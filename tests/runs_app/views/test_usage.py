"""The page with the use of an agent per day and version."""

import re
from datetime import UTC, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from access_app.role import Role
from runs_app.models import AgentRun, Score
from runs_app.usage.daily_rollup import roll_up_days
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.factories import RunFactory
from versions_app.models import Activation

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent():
    return AgentFactory(name="Night porter", owner_id="support")


@pytest.fixture
def publisher(agent):
    return browser(member(Role.PUBLISHER, "support"))


def page(client, agent, **params):
    return client.get(reverse("runs:usage", args=[agent.pk]), params)


def run(agent, days_ago=0, **columns):
    at = timezone.now() - timedelta(days=days_ago, seconds=10)
    return RunFactory(agent=agent, chunks=[], created_at=at, finished_at=at + timedelta(seconds=3), **columns)


def words(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_the_page_has_charts_and_a_table_of_the_same_figures(agent, publisher):
    run(agent, 1, cost=Decimal("0.25"))
    run(agent, 1, status=AgentRun.Status.FAILED)
    run(agent, 2, version_number=2, version_id=None)

    answer = page(publisher, agent)

    text = answer.content.decode()
    titles = re.findall(r'<title id="usage-\w+">([^<]*)</title>', text)
    assert titles[0] == "Runs per day and version: 3 in all, at most 2 a day. The table below has all figures."
    assert [title.split(" per day")[0] for title in titles] == [
        "Runs",
        "Errors",
        "Duration, p95",
        "Tokens",
        "Cost",
        "Mean score",
    ]
    day = (timezone.now() - timedelta(days=1, seconds=10)).astimezone(UTC)
    assert f"<title>{day.day} {day:%b}: v1 2</title>" in text
    assert re.search(r"v1 2 1 \(50 %\) 2\.[789] s 30 \$0\.25", words(answer))
    assert "style=" not in text


def test_versions_differ_by_pattern_and_shape(agent, publisher):
    for number in range(1, 9):
        run(agent, 1, version_number=number)

    answer = page(publisher, agent)

    series = answer.context["series"]
    assert [item.label for item in series] == ["v8", "v7", "v6", "v5", "v4", "3 other versions"]
    runs, _, durations, *_ = answer.context["charts"]
    assert len({bar.style for bar in runs.days[0].bars}) == 6
    text = answer.content.decode()
    assert all(f'id="usage-pattern-{bar.style}"' in text for bar in runs.days[0].bars)
    shapes = {re.sub(r"^M[-\d.]+ [-\d.]+", "", marker.path) for marker in durations.days[0].markers}
    assert len(shapes) == 6


def test_bars_end_at_the_top_and_do_not_overlap(agent, publisher):
    for number in (1, 1, 2):
        run(agent, 1, version_number=number)

    (day,) = page(publisher, agent).context["charts"][0].days

    assert [round(bar.height) for bar in day.bars] == [71, 35]
    assert day.bars[0].y == pytest.approx(day.bars[1].y + day.bars[1].height, abs=0.2)
    assert min(bar.y for bar in day.bars) == pytest.approx(26, abs=0.2)


def test_negative_scores_stay_in_the_chart(agent, publisher):
    Score.objects.create(run=run(agent, 1), scorer="tone", score=-1.0)

    (day,) = page(publisher, agent).context["charts"][-1].days

    assert day.description.endswith(": v1 -1.00")
    (marker,) = day.markers
    assert float(marker.path.split("a")[0].split()[1]) == 132


def test_moves_of_live_are_marked(agent, publisher):
    run(agent, 1)
    agent.edit({"description": "New"})
    Activation.objects.filter(to_version_number=1).update(created_at=timezone.now() - timedelta(days=5))

    moves = page(publisher, agent, days=7).context["moves"]

    assert [move.description.split(" since")[0] for move in moves] == ["v1 live", "v2 live"]
    assert moves[0].x < moves[1].x <= 360
    assert page(publisher, agent, days=7).content.decode().count('<path d="M') >= 12


@pytest.mark.parametrize(("days", "count"), [("7", 7), ("90", 90), ("8", 30), ("x", 30), ("", 30), ("\0", 30)])
def test_the_range_is_in_the_url(agent, publisher, days, count):
    run(agent, 60)

    answer = page(publisher, agent, days=days)

    assert len(answer.context["report"].days) == count
    assert bool(answer.context["report"].usage) == (count == 90)


def test_without_figures_the_page_says_so(agent, publisher):
    assert "No runs in this time" in words(page(publisher, agent))


def test_the_role_decides_on_the_figures(agent):
    person = member(Role.EDITOR, "support")
    run(agent, 1, requested_by=person)

    answer = page(browser(person), agent)

    assert answer.context["report"].usage == {}
    assert "Reading the figures of all runs needs the Publisher role in support." in words(answer)
    assert "30 days" not in words(answer)
    assert "No runs in this time" not in words(answer)
    empty = answer.content.decode().partition('class="empty"')[2]
    assert reverse("runs:of_agent", args=[agent.pk]) in empty.partition("</div>")[0]
    assert page(browser(member(Role.PUBLISHER, "newsroom")), agent).status_code == 404


def test_the_runs_tab_leads_to_the_usage(agent, publisher):
    text = publisher.get(reverse("runs:of_agent", args=[agent.pk])).content.decode()

    assert reverse("runs:usage", args=[agent.pk]) in text


def test_the_number_of_queries_is_constant(agent, publisher):
    def count():
        with CaptureQueriesContext(connection) as queries:
            page(publisher, agent, days=90)
        return len(queries)

    run(agent, 3)
    list(roll_up_days())
    few = count()
    for number in range(1, 6):
        run(agent, 0, version_number=number)
        run(agent, number, version_number=number)
    list(roll_up_days())

    assert count() == few <= 12
