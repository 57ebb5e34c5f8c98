"""
Runs statements of Snowflake with fakesnow: emulated_snowflake.py TABLES STATEMENT…; all of them on the first table, two on each other one.
Prints the answers as JSON. fakesnow knows neither numbers of hexadecimal digits nor the time that a column tells as text: macros of the same
meaning take their place.
"""

import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")

import fakesnow  # noqa: E402
import snowflake.connector  # noqa: E402

tables, *paths = [pathlib.Path(path).read_text() for path in sys.argv[1:]]
statements = [text.replace("TO_NUMBER(", "HEX_NUMBER(") for text in paths]
columns = """(ID NUMBER(38, 0), DIGITS VARCHAR, MODIFIEDTIME TIMESTAMP_TZ, NAIVE TIMESTAMP_NTZ, KOLKATA TIMESTAMP_NTZ, TOLD VARCHAR,
  MILLIS NUMBER(38, 0))"""
answers = []
with fakesnow.patch():
    connection = snowflake.connector.connect(database="RAW", schema="FEEDBACK")
    cursor = connection.cursor()
    for macro in (
        "hex_number(digits, format) AS CAST('0x' || digits AS BIGINT)",
        "to_timestamp_tz(told) AS CAST(told AS TIMESTAMPTZ)",
    ):
        connection._duck_conn.execute(f"CREATE MACRO {macro}")
    for place, rows in enumerate(json.loads(tables)):
        cursor.execute(f"CREATE OR REPLACE TABLE REVIEWS {columns}")
        values = ", ".join(
            f"({id}, '{id}', '{time}'::TIMESTAMP_TZ, '{naive}', '{kolkata}', '{time}', {millis})"
            for id, time, naive, kolkata, millis in rows
        )
        cursor.execute(f"INSERT INTO REVIEWS VALUES {values}")
        answers.append(
            [
                [[None if value is None else str(value) for value in row] for row in cursor.execute(text).fetchall()]
                for text in (statements if place == 0 else statements[:2])
            ]
        )
print(json.dumps(answers))
