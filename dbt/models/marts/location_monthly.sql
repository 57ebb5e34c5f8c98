-- The reviews of each location and month; those without a location have a row whose id is null. A location has the name of its last change.
with named as (
  select location_id, location_name, max(modified_time) as modified_time
  from {{ ref('review_facts') }}
  where location_id is not null and location_name is not null
  group by location_id, location_name
),

ranked as (
  select
    location_id,
    location_name,
    row_number() over (partition by location_id order by modified_time desc, location_name) as place
  from named
)

select
  {{ feedback.as_bigint('figures.key') }} as location_id,
  ranked.location_name,
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
left join ranked on {{ feedback.as_text('ranked.location_id') }} = figures.key and ranked.place = 1
where figures.scope = 'location'
