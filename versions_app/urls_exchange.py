"""URLs of the export and import pages."""

from django.urls import path

from versions_app.views import exchange

app_name = "exchange"

JOB = "exchange/<uuid:job_id>"

urlpatterns = [
    path("exchange", exchange.job_list, name="list"),
    path("exchange/export", exchange.export, name="export"),
    path("exchange/import", exchange.upload, name="upload"),
    path(JOB, exchange.view_job, name="job"),
    path(f"{JOB}/progress", exchange.progress, name="progress"),
    path(f"{JOB}/confirm", exchange.confirm, name="confirm"),
    path(f"{JOB}/delete", exchange.delete_job, name="delete"),
    path(f"{JOB}/download", exchange.download_export, name="download"),
]
