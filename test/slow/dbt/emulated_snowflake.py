"""
Runs statements of Snowflake with fakesnow: emulated_snowflake.py PLAN; a plan is described in emulators.ts. Prints the answers as JSON.
fakesnow knows neither numbers of hexadecimal digits nor the time that a column tells as text: macros of the same meaning take their place.
"""

import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import fakesnow  # noqa: E402
import snowflake.connector  # noqa: E402

plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
# fakesnow makes 64 bits of DECIMAL(38, 0), which is too little for sums of digests.
replacements = {"TO_NUMBER(": "HEX_NUMBER(", "DECIMAL(38, 0)": "DECIMAL(37, 0)"}
statements = plan["statements"]
for known, replaced in replacements.items():
    statements = [text.replace(known, replaced) for text in statements]
types = {
    "whole": "NUMBER(38, 0)",
    "text": "VARCHAR",
    "instant": "TIMESTAMP_TZ",
    "naive": "TIMESTAMP_NTZ",
    "decimal": "FLOAT",
    "json": "VARIANT",
}


def literal(value):
    """For DuckDB, which fakesnow runs on: it parses a filled table faster."""
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


answers = []
with fakesnow.patch():
    connection = snowflake.connector.connect(database="RAW", schema="FEEDBACK")
    cursor = connection.cursor()
    for macro in (
        "hex_number(digits, format) AS CAST('0x' || digits AS BIGINT)",
        "to_timestamp_tz(told) AS CAST(told AS TIMESTAMPTZ)",
    ):
        connection._duck_conn.execute(f"CREATE MACRO {macro}")
    for case in plan["cases"]:
        table = case["table"]
        columns = ", ".join(f"{name} {types[kind]}" for name, kind in case["columns"])
        cursor.execute(f"CREATE OR REPLACE TABLE {table} ({columns})")
        rows = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in case["rows"])
        connection._duck_conn.execute(f"INSERT INTO RAW.FEEDBACK.{table.upper()} VALUES {rows}")
        answers.append(
            [
                [[None if value is None else str(value) for value in row] for row in cursor.execute(statements[place]).fetchall()]
                for place in case["asked"]
            ]
        )
print(json.dumps(answers))
