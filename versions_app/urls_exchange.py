"""The addresses of the pages that export and import."""

from django.urls import path

from versions_app import views_exchange

app_name = "exchange"

JOB = "exchange/<uuid:job_id>"

urlpatterns = [
    path("exchange", views_exchange.list, name="list"),
    path("exchange/export", views_exchange.export, name="export"),
    path("exchange/import", views_exchange.upload, name="upload"),
    path(JOB, views_exchange.job, name="job"),
    path(f"{JOB}/progress", views_exchange.progress, name="progress"),
    path(f"{JOB}/confirm", views_exchange.confirm, name="confirm"),
    path(f"{JOB}/download", views_exchange.download, name="download"),
]
