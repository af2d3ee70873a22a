"""Formats of dates with 24 hours. The default writes out "midnight", and makes the columns of lists too wide."""

DATE_FORMAT = "j M Y"
DATETIME_FORMAT = "j M Y, H:i"
