"""Loads reviews.duckdb into a destination of dlt: after the first run, the reviews that the last syncs wrote."""

import dlt
import duckdb


def query(sql: str):
    with duckdb.connect("reviews.duckdb", read_only=True) as db:
        return db.sql(sql).to_arrow_table()


@dlt.resource(primary_key="id", write_disposition="merge", columns={"gone": {"hard_delete": True}})
def reviews(since=dlt.sources.incremental("_airbyte_extracted_at")):
    yield query("""
        SELECT *, false AS gone FROM reviews
        UNION ALL BY NAME
        SELECT id, _airbyte_extracted_at, true AS gone FROM deleted_reviews
        WHERE id NOT IN (SELECT id FROM reviews)
    """)


@dlt.resource(write_disposition="replace")
def review_contents():
    yield query("FROM review_contents")


pipeline = dlt.pipeline("load_reviews", destination="duckdb", dataset_name="feedback")
pipeline.run([reviews, review_contents])
print(pipeline.last_trace.last_normalize_info.row_counts)
