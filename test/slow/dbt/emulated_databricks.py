"""
Runs statements of Databricks with Spark: emulated_databricks.py TABLES STATEMENT…; all of them on the first table, two on each other one.
Prints the answers as JSON.
"""

import json
import pathlib
import sys

from pyspark.sql import SparkSession

tables, *paths = [pathlib.Path(path).read_text() for path in sys.argv[1:]]
statements = [text.strip().rstrip(";") for text in paths]
settings = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # As in a warehouse of Databricks.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
texts = "id STRING, time STRING, naive STRING, kolkata STRING, millis STRING"
typed = """SELECT CAST(id AS BIGINT) AS id, id AS digits, CAST(time AS TIMESTAMP) AS modifiedTime, CAST(naive AS TIMESTAMP_NTZ) AS naive,
  CAST(kolkata AS TIMESTAMP_NTZ) AS kolkata, time AS told, CAST(millis AS BIGINT) AS millis FROM {given}"""
answers = []
for place, rows in enumerate(json.loads(tables)):
    table = spark.sql(typed, given=spark.createDataFrame(rows, texts)).cache()
    table.createOrReplaceTempView("reviews")
    answers.append(
        [
            [[None if value is None else str(value) for value in row] for row in spark.sql(text).collect()]
            for text in (statements if place == 0 else statements[:2])
        ]
    )
print(json.dumps(answers))
