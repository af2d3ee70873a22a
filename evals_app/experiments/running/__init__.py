"""Parts of the work on an experiment in a process: the scoring of its answers, and its work in the foreground."""
