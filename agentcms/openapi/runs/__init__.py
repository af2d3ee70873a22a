"""Runs in the API document: approvals and background tasks."""
