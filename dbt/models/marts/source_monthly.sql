-- The reviews of each source and month; those without a source have a row whose id is null. A source has the name of its last change.
with named as (
  select source_id, source_name, max(modified_time) as modified_time
  from {{ ref('review_facts') }}
  where source_id is not null and source_name is not null
  group by source_id, source_name
),

ranked as (
  select
    source_id,
    source_name,
    row_number() over (partition by source_id order by modified_time desc, source_name) as place
  from named
)

select
  {{ feedback.as_bigint('figures.key') }} as source_id,
  ranked.source_name,
  figures.month,
  figures.reviews,
  figures.rated,
  figures.average_rating,
  figures.average_score,
  figures.positive,
  figures.neutral,
  figures.negative,
  figures.share_negative,
  figures.tasks,
  figures.open_tasks,
  figures.closed_tasks,
  figures.share_closed,
  figures.answered,
  figures.share_answered,
  figures.median_hours_to_answer,
  figures.open_liabilities,
  figures.oldest_open_days
from {{ ref('scope_monthly') }} as figures
left join ranked on {{ feedback.as_text('ranked.source_id') }} = figures.key and ranked.place = 1
where figures.scope = 'source'
