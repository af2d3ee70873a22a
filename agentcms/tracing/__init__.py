"""Traces by OpenTelemetry, for the tools of the operator. Off, and without any import, until an endpoint is set."""
