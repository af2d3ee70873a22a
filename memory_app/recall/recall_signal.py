"""The signal of recalls, which metrics count."""

from django.dispatch import Signal

# Sent after each recall of a run with `outcome`, "found", "nothing" or "failed", and `seconds`.
messages_recalled = Signal()
