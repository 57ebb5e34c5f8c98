"""Prints the rows of relations as JSON: rows.py duckdb FILE RELATION…, or rows.py postgres SCHEMA RELATION…; times in UTC, integers beyond 2^53 as text."""

import datetime
import decimal
import json
import sys

kind, place, *relations = sys.argv[1:]


def plain(value):
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=datetime.timezone.utc) if value.tzinfo is None else value.astimezone(datetime.timezone.utc)
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        value = int(value) if value == int(value) else float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value


if kind == "duckdb":
    import duckdb

    connection = duckdb.connect(place, read_only=True)
    schema = "main"
else:
    import psycopg2

    connection = psycopg2.connect("")
    schema = place

answer = {}
for relation in relations:
    cursor = connection.cursor()
    cursor.execute(f'SELECT * FROM {schema}."{relation}"')
    names = [column[0] for column in cursor.description]
    answer[relation] = [{name: plain(value) for name, value in zip(names, row)} for row in cursor.fetchall()]
print(json.dumps(answer))
