"""The signal of the ends of background tasks, which the metrics count."""

from django.dispatch import Signal

task_ended = Signal()  # `status` of a task, after its end is committed
