-- The reviews that are deleted, with what is known of them: the row that is still in the warehouse, or an older version of it.
with kept as (
  select review_id, modified_time, mention_time, source, extracted_time
  from {{ ref('stg_feedback__review_rows') }}
  where mention_time is not null or {{ feedback.json_is('source', 'object') }}
  union all
  select review_id, modified_time, mention_time, source, extracted_time
  from (
    {{ feedback.read_stream('_history_reviews', [
      ['review_id', 'bigint', ['id']],
      ['modified_time', 'time', ['modifiedTime']],
      ['mention_time', 'time', ['mentionTime']],
      ['source', 'json', ['source']],
      ['extracted_time', 'time', ['_airbyte_extracted_at']],
    ]) | indent(4) }}
  ) as history
),

newest as (
  select
    kept.*,
    row_number() over (partition by review_id order by modified_time desc, extracted_time desc) as version_rank
  from kept
)

select
  deletions.review_id,
  coalesce(case when deletions.reported_time > newest.modified_time then deletions.reported_time end, deletions.deleted_time) as deleted_time,
  {{ feedback.json_value('newest.source', 'id', 'bigint') }} as source_id,
  {{ feedback.json_value('newest.source', 'name') }} as source_name,
  newest.mention_time
from {{ ref('stg_feedback__deletions') }} as deletions
left join newest on newest.review_id = deletions.review_id and newest.version_rank = 1
left join {{ ref('stg_feedback__reviews') }} as reviews on reviews.review_id = deletions.review_id
where reviews.review_id is null
