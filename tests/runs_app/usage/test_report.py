"""Figures of runs per day and version: the roll-up, the open days, and who may read them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from access_app.role import Role
from jobs_app import runner
from jobs_app.cleanup import CLEAN_UP
from runs_app import tasks  # noqa: F401  a worker knows them all
from runs_app.models import AgentRun, DailyUsage, Score
from runs_app.usage.daily_rollup import roll_up_days
from runs_app.usage.figures import UsageFigures
from runs_app.usage.report import build_report, mean_score, p95
from tests.factories import AgentFactory, MembershipFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
if datetime.now(UTC) < NOON:  # "today" must be over at noon
    NOON -= timedelta(hours=11, minutes=59)


@pytest.fixture
def publisher():
    return member(Role.PUBLISHER)


@pytest.fixture
def agent():
    return AgentFactory()


def run(agent, days_ago=0, seconds=2.0, **columns):
    start = NOON - timedelta(days=days_ago, seconds=60)
    times = {"created_at": start, "started_at": start, "finished_at": start + timedelta(seconds=seconds)}
    return RunFactory(agent=agent, chunks=[], **times, **columns)


def usage(agent, user, days=30):
    return build_report(agent, user, days).usage


def day(days_ago):
    return (NOON - timedelta(days=days_ago)).date()


def clean_up():
    return runner.run_claimed(str(runner.enqueue(CLEAN_UP).pk)).result["removed"]


def test_figures_are_the_same_before_and_after_the_roll_up(agent, publisher):
    first = run(agent, 3, seconds=1, cost=Decimal("0.25"))
    run(agent, 3, seconds=4, cost=Decimal("0.50"), status=AgentRun.Status.FAILED)
    run(agent, 3, version_number=2, usage={"inputTokens": 5, "outputTokens": 6})
    run(agent, 3, version_number=None, target=AgentRun.Target.UNSAVED)
    run(agent, 0)
    RunFactory(agent=agent, open=True, chunks=[])
    Score.objects.create(run=first, scorer="tone", score=0.5)
    Score.objects.create(run=first, scorer="length", score=1.0)
    Score.objects.create(run=first, scorer="broken", error="No")
    before = usage(agent, publisher)

    list(roll_up_days())
    list(roll_up_days())

    assert DailyUsage.objects.count() == 3
    assert usage(agent, publisher) == before
    figures = before[day(3), 1]
    assert (figures.runs, figures.errors, figures.tokens, figures.cost) == (2, 1, 30, Decimal("0.75"))
    assert figures.scores == {"tone": (1, 0.5), "length": (1, 1.0)}
    assert mean_score(figures) == 0.75
    assert (before[day(3), 2].tokens, before[day(3), 0].runs, before[day(0), 1].runs) == (11, 1, 1)


def test_percentiles_are_at_most_five_percent_off(agent, publisher):
    durations = [0.003, 0.4, *(number / 7 for number in range(1, 100)), 700.0]
    for seconds in durations:
        run(agent, seconds=seconds)

    estimate = p95(usage(agent, publisher)[day(0), 1]).total_seconds()

    exact = sorted(durations)[int(len(durations) * 0.95 + 0.999) - 1]
    assert abs(estimate - exact) / exact <= 0.05


def test_without_a_duration_there_is_no_percentile(agent, publisher):
    run(agent, status=AgentRun.Status.FAILED)
    AgentRun.objects.update(started_at=None)

    figures = usage(agent, publisher)[day(0), 1]

    assert (figures.runs, p95(figures)) == (1, None)
    assert p95(UsageFigures()) is None


def test_figures_outlive_the_runs(agent, publisher, settings):
    settings.RUN_DAYS = 5
    for days_ago in (0, 4, 6, 8):
        run(agent, days_ago)
    before = usage(agent, publisher)

    assert clean_up()["runs"] == 2
    assert clean_up()["runs"] == 0

    assert usage(agent, publisher) == before
    assert len(before) == 4


def test_a_day_that_lost_some_of_its_runs_is_not_written_again(agent, publisher, settings):
    settings.RUN_DAYS = 2
    early = run(agent, 2)
    run(agent, 2)
    clean_up()
    early.delete()

    clean_up()

    assert usage(agent, publisher)[day(2), 1].runs == 2


def test_late_scores_are_added(agent, publisher):
    late = run(agent, 1)
    list(roll_up_days())
    Score.objects.create(run=late, scorer="tone", score=0.5)

    list(roll_up_days())

    assert usage(agent, publisher)[day(1), 1].scores == {"tone": (1, 0.5)}


def test_figures_go_with_the_agent(agent, publisher):
    run(agent, 1)
    list(roll_up_days())

    agent.delete()

    assert not DailyUsage.objects.exists()


def test_only_runs_that_the_user_may_read_by_a_role_are_counted(agent):
    person = member(Role.PUBLISHER, "support")
    MembershipFactory(user=person, owner_id="", role=Role.EDITOR)
    for days_ago in (0, 2):
        run(agent, days_ago, owner_id="support")
        run(agent, days_ago, owner_id="newsroom")
        run(agent, days_ago, requested_by=person)
    list(roll_up_days())

    assert {key: figures.runs for key, figures in usage(agent, person).items()} == {(day(0), 1): 1, (day(2), 1): 1}
    assert usage(agent, member(Role.EDITOR)) == {}
    everyone = usage(agent, member(is_superuser=True))
    assert {key: figures.runs for key, figures in everyone.items()} == {(day(0), 1): 3, (day(2), 1): 3}


def test_expired_figures_are_deleted(agent):
    run(agent, 500)
    list(roll_up_days())
    DailyUsage.objects.update(day=timezone.now().date() - timedelta(days=401))

    assert clean_up()["use per day"] == 1


def test_the_open_days_are_read_from_an_index(agent, publisher):
    busy = AgentFactory()
    # Each of the other indexes finds many rows that the condition excludes, and finds them in many pages.
    for _ in range(30):
        run(agent, days_ago=40)
        run(busy)
        for _ in range(7):
            run(busy, days_ago=40)
    run(agent)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Other tests leave statistics of rows that are deleted, by which another index seems cheaper.
            cursor.execute("ANALYZE runs_app_agentrun")
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")  # it reads so few rows by any index

    open_runs = AgentRun.objects.filter(agent=agent, finished_at__gte=NOON - timedelta(days=1))

    assert "run_end_of_agent" in open_runs.order_by().explain()
    assert "one_usage_per_day" in DailyUsage.objects.filter(agent=agent, day__gte=day(90)).explain() or (
        connection.vendor == "sqlite"
    )


def test_the_roll_up_is_part_of_the_scheduled_clean_up(agent):
    run(agent, 1)

    clean_up()

    assert DailyUsage.objects.get().runs == 1
    call_command("check")
