-- The deleted reviews by source and month of deletion. The source is null where no version of the review was kept. A
-- source has the name of its review that was deleted last.
with named as (
  select source_id, nullif(trim(source_name), '') as source_name, max(deleted_time) as deleted_time
  from {{ ref('deleted_reviews_current') }}
  where source_id is not null and nullif(trim(source_name), '') is not null
  group by source_id, nullif(trim(source_name), '')
),

ranked as (
  select
    source_id,
    source_name,
    row_number() over (partition by source_id order by deleted_time desc, source_name) as place
  from named
),

dated as (
  select
    source_id,
    {{ feedback.local_month('deleted_time') }} as month,
    case
      when mention_time >= {{ feedback.instant('1990-01-01T00:00:00Z') }} and mention_time <= deleted_time
        then {{ feedback.seconds_between('mention_time', 'deleted_time') }} / 86400
    end as days_to_deletion
  from {{ ref('deleted_reviews_current') }}
),

counted as (
  select
    source_id,
    month,
    count(*) as deleted_reviews,
    {{ feedback.round_to(feedback.median('days_to_deletion'), 1) }} as median_days_to_deletion
  from dated
  group by source_id, month
)

select counted.source_id, ranked.source_name, counted.month, counted.deleted_reviews, counted.median_days_to_deletion
from counted
left join ranked on ranked.source_id = counted.source_id and ranked.place = 1
