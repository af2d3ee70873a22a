"""JSON columns of tables with very many rows."""

import pytest
from django.db import connection

from runs_app.models import RunEvent
from tests.runs_app.factories import RunFactory

DATA = {"type": "text-delta", "payload": {"id": "1-0", "text": "Grüße, a: b", "list": [1, 2.5, None, True]}}


@pytest.mark.django_db
def test_rows_are_read_back_as_they_were():
    run = RunFactory(chunks=[])
    RunEvent.objects.create(run=run, number=1, type="chunk", data=DATA)

    assert RunEvent.objects.get(run=run).data == DATA
    assert RunEvent.objects.filter(data__payload__text="Grüße, a: b").exists()


@pytest.mark.django_db
@pytest.mark.sqlite_only
def test_rows_have_no_spaces_between_members():
    run = RunFactory(chunks=[])
    RunEvent.objects.bulk_create([RunEvent(run=run, number=1, type="chunk", data=DATA)])
    with connection.cursor() as cursor:
        cursor.execute("SELECT data FROM runs_app_runevent WHERE run_id = %s", [run.pk.hex])
        ((text,),) = cursor.fetchall()

    assert text.startswith('{"type":"text-delta","payload":{"id":"1-0",')
