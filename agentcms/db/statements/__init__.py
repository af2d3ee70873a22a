"""Fast execution of the statements that most requests of the API run.

Django builds and compiles a queryset again each time it is executed, and sends the statements of a save one by one.
That takes more CPU than the statements themselves. Two modules avoid it, on PostgreSQL and SQLite alike:

- `compiled_query` compiles a queryset once per process and fills in its values afterwards. A query of the API takes
  0.02 to 0.15 ms of CPU instead of 0.3 to 2.3 ms. That saves 2 to 5 ms per request.
- `write_batch` writes rows with `INSERT` and `UPDATE` statements that are built once, and sends the statements of an
  edit together. That saves 1.4 ms per edit.

`python -m benchmarks.fast_paths` repeats the measurement of the queries. `agentcms.db.backends` are Django's database
backends with the methods that both modules need: `run_statement` and `run_statements`. On PostgreSQL,
`prepared_statements` executes them without cursors, which saves 0.04 ms of CPU for each statement and 0.2 ms for an
edit.

The cost is a second way to execute querysets and saves, which uses parts of Django that are not public. Use it only
where a measurement justifies it. The tests compare each compiled query with the statement of Django for the same
queryset, and each written row with a row that Django saves. A Django that works differently fails there.
"""
