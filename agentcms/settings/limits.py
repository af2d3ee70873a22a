"""The largest values of settings."""

MAX_DAYS = 36_500  # 100 years: dates before the year 1 are an error, so longer periods cannot be subtracted
MAX_TASK_SECONDS = 24 * 3600  # of a background task
