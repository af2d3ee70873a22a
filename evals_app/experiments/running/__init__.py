"""The work on an experiment in a process: on its items, on the scores of its answers, and in the foreground."""
