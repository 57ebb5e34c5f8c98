"""Reads every stream into a DuckDB cache with PyAirbyte: read.py EXECUTABLE CONFIG CACHE [--again]; prints counts as JSON."""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

import airbyte as ab  # noqa: E402
from airbyte.caches import DuckDBCache  # noqa: E402

executable, config, path = sys.argv[1:4]
source = ab.get_source("source-feedback", config=json.load(open(config)), local_executable=executable)
source.check()
source.select_all_streams()
cache = DuckDBCache(db_path=path)
result = source.read(cache=cache)
tables = {name: len(dataset.to_pandas()) for name, dataset in result.streams.items()}
versions = cache.run_sql_query(
    "SELECT id, strftime(modifiedtime, '%Y-%m-%dT%H:%M:%S.%gZ') AS at FROM reviews"
    " WHERE id NOT IN (SELECT id FROM deleted_reviews)"
)
print(
    "RESULT "
    + json.dumps(
        {
            "streams": source.get_available_streams(),
            "records": result.processed_records,
            "tables": tables,
            "reviews": sorted(f"{row['id']} {row['at']}" for row in versions),
        }
    )
)
