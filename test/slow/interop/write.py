"""Reads a source into a DuckDB cache with PyAirbyte and writes it from there: write.py SOURCE DESTINATION CONFIG CACHE."""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

import airbyte as ab  # noqa: E402
from airbyte.caches import DuckDBCache  # noqa: E402

source_executable, executable, config, path = sys.argv[1:5]
source = ab.get_source("source-warehouse", config={}, local_executable=source_executable)
source.select_all_streams()
result = source.read(cache=DuckDBCache(db_path=path), force_full_refresh=True)
destination = ab.get_destination("destination-feedback", config=json.load(open(config)), local_executable=executable)
destination.check()
print("WRITING", flush=True)
# A second process cannot write the state of a destination into the same DuckDB cache: PyAirbyte inserts its key again.
destination.write(result, state_cache=False, force_full_refresh=True)
print("RESULT", json.dumps({"read": result.processed_records}))
