"""The signal of spans that were not exported."""

from django.dispatch import Signal

spans_dropped = Signal()  # count: int, reason: queue_full, export_failed or stopped
