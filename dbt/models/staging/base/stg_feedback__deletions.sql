-- The last deletion of each review that was ever deleted, including restored ones, from the stream `deleted_reviews`
-- and from tombstones.
with deletions as (
  select review_id, deleted_time, deleted_time as reported_time
  from (
    {{ feedback.read_stream('deleted_reviews', [
      ['review_id', 'bigint', ['id']],
      ['deleted_time', 'time', ['modifiedTime']],
    ]) | indent(4) }}
  ) as reported
  union all
  select review_id, deleted_time, {{ feedback.null_of('time') }} as reported_time
  from {{ ref('stg_feedback__review_rows') }}
  where deleted_time is not null
  union all
  select review_id, deleted_time, {{ feedback.null_of('time') }} as reported_time
  from (
    {{ feedback.read_stream('_deletions', [
      ['review_id', 'bigint', ['id']],
      ['deleted_time', 'time', ['time']],
    ]) | indent(4) }}
  ) as tombstones
)

select review_id, max(deleted_time) as deleted_time, max(reported_time) as reported_time
from deletions
group by review_id
