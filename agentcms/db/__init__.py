"""Fast execution of the statements that most requests run.

Django builds and compiles a queryset anew each time it is executed, and sends the statements of a save one by one.
That takes more CPU than the statements themselves. Two things here avoid it for the busiest requests, on PostgreSQL
and SQLite alike:

- `compiled_query` compiles a queryset once per process and fills in its values afterwards. It saves 2 to 5 ms of CPU
  per request of the API: a query costs about 0.1 ms instead of 0.5 to 1.5 ms.
- `write_batch` writes rows with `INSERT` and `UPDATE` statements that are built once, and sends the statements of an
  edit together. It saves 1.4 ms per edit.

`backends` are Django's database backends with the methods that both need: `run_statement` and `run_statements`.

The cost is a second way to run a queryset, which uses parts of Django that are not public. Use it only where a
measurement justifies it. The tests compare each compiled query with the statement that Django executes for the same
queryset, so a new Django that compiles differently fails there.
"""
