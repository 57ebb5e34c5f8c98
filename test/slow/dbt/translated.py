"""
Runs the marts that dbt compiled for a dialect on DuckDB, translated by sqlglot: translated.py DIALECT COMPILED FILE SNAPSHOT. FILE is the
database that dbt made over a snapshot; its staging is what they read, and its marts are what they must give. Prints each mart that differs.
"""

import pathlib
import sys

import duckdb
import sqlglot

dialect, folder, file, snapshot = sys.argv[1:]
staging = ["reviews_current", "review_sentiments_current", "review_liabilities_current", "review_engagements_current", "deleted_reviews_current", "regions", "scales"]
texts = {path.stem: path.read_text() for part in ("marts", "scorecards") for path in (pathlib.Path(folder) / part).glob("*.sql")}

# A view over the snapshot, of which dbt keeps no table.
contents = "review_contents_current"
parquet = f"{file}.{dialect}.parquet"
with duckdb.connect(file, read_only=True) as made:
    made.execute(f"ATTACH '{snapshot}' AS reviews (READ_ONLY)")
    made.execute(f"COPY (FROM {contents}) TO '{parquet}'")

connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
connection.execute(f"ATTACH '{file}' AS made (READ_ONLY)")
connection.execute("ATTACH ':memory:' AS analytics")
connection.execute("CREATE SCHEMA analytics.feedback")


def columns(name):
    """The columns of what dbt made; in Snowflake a time is a timestamp without a zone, in UTC."""
    described = connection.execute(f"DESCRIBE made.main.{name}").fetchall()
    naive = dialect == "snowflake"
    return ", ".join(
        f"CAST({column} AT TIME ZONE 'UTC' AS TIMESTAMP) AS {column}" if naive and type == "TIMESTAMP WITH TIME ZONE" else f'"{column}"'
        for column, type, *_ in described
    ), ", ".join(f'"{column}"' for column, *_ in described)


for name in staging:
    connection.execute(f"CREATE TABLE analytics.feedback.{name} AS SELECT {columns(name)[0]} FROM made.main.{name}")
connection.execute(f"CREATE TABLE analytics.feedback.{contents} AS FROM '{parquet}'")

waiting = dict(texts)
while waiting:
    # A mart runs once those that it reads are there.
    ready = [name for name, text in waiting.items() if not any(table.name in waiting for table in sqlglot.parse_one(text, dialect=dialect).find_all(sqlglot.exp.Table))]
    for name in ready:
        # BigQuery's NUMERIC has nine digits behind the point, DuckDB's DECIMAL three.
        translated = sqlglot.transpile(waiting.pop(name), read=dialect, write="duckdb")[0].replace("AS DECIMAL)", "AS DECIMAL(28, 9))")
        connection.execute(f"CREATE TABLE analytics.feedback.{name} AS {translated}")
        wanted, names = columns(name)
        made, found = f"SELECT {wanted} FROM made.main.{name}", f"SELECT {names} FROM analytics.feedback.{name}"
        for sign, query in (("-", f"{made} EXCEPT ALL {found}"), ("+", f"{found} EXCEPT ALL {made}")):
            for row in connection.execute(f"{query} ORDER BY ALL LIMIT 2").fetchall():
                print("DIFFERENT", name, sign, row)
print("COMPARED", len(texts))
