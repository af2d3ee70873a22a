"""The addresses of jobs below /api."""

from django.urls import path

from jobs_app import api

urlpatterns = [path("jobs/<str:job_id>", api.JobView.as_view(), name="api-job")]
