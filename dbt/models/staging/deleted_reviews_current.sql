-- The deleted reviews, with what is known about them from the row that is still in the warehouse, or from an older
-- version.
with kept as (
  select review_id, modified_time, mention_time, source, extracted_time
  from {{ ref('stg_feedback__review_rows') }}
  where deleted_time is null or mention_time is not null or {{ feedback.json_is('source', 'object') }}
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

mentions as (
  select
    review_id,
    mention_time,
    row_number() over (partition by review_id order by modified_time desc, extracted_time desc) as place
  from kept
  where mention_time is not null
),

sources as (
  select
    review_id,
    source,
    row_number() over (partition by review_id order by modified_time desc, extracted_time desc) as place
  from kept
  where {{ feedback.json_value('source', 'id') }} is not null
    or nullif(trim({{ feedback.json_value('source', 'name') }}), '') is not null
),

versions as (
  select review_id, max(modified_time) as modified_time
  from kept
  group by review_id
)

select
  deletions.review_id,
  coalesce(
    case when deletions.reported_time > versions.modified_time then deletions.reported_time end,
    deletions.deleted_time
  ) as deleted_time,
  {{ feedback.json_value('sources.source', 'id', 'bigint') }} as source_id,
  {{ feedback.json_value('sources.source', 'name') }} as source_name,
  mentions.mention_time
from {{ ref('stg_feedback__deletions') }} as deletions
left join versions on versions.review_id = deletions.review_id
left join mentions on mentions.review_id = deletions.review_id and mentions.place = 1
left join sources on sources.review_id = deletions.review_id and sources.place = 1
left join {{ ref('stg_feedback__reviews') }} as reviews on reviews.review_id = deletions.review_id
where reviews.review_id is null
