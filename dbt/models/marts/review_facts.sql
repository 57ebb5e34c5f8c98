-- One row for each review: what the other models count, list and average. A task, an open and a closed one are 1 or 0.
with engagements as (
  select
    review_id,
    count(*) as engagements,
    min(engagement_time) as first_response_time,
    max(engagement_time) as last_engagement_time
  from {{ ref('review_engagements_current') }}
  group by review_id
),

graded as (
  select
    review_id,
    case
      when severity_level = 3 or lower(trim(severity)) = 'high' then 3
      when severity_level = 2 or lower(trim(severity)) = 'medium' then 2
      when severity_level = 1 or lower(trim(severity)) = 'low' then 1
      else 0
    end as grade
  from {{ ref('review_liabilities_current') }}
),

liabilities as (
  select review_id, count(*) as liabilities, max(grade) as grade
  from graded
  group by review_id
),

regions_by_id as (
  select location_id, max(region) as region
  from {{ ref('regions') }}
  where location_id is not null
  group by location_id
),

regions_by_name as (
  select lower(trim(location_name)) as folded_name, max(region) as region
  from {{ ref('regions') }}
  where location_name is not null
  group by lower(trim(location_name))
),

tasks as (
  select
    reviews.*,
    -- A value outside its scale counts as missing.
    case when reviews.rating > 0 and reviews.rating <= 5 then reviews.rating end as valid_rating,
    case when reviews.review_score between 0 and 5 then reviews.review_score end as valid_score,
    -- An impossible time counts as missing: some sources send the year 1 or 9999 if they know no time.
    case
      when reviews.mention_time >= {{ feedback.instant('1990-01-01T00:00:00Z') }}
        and {{ feedback.seconds_between('reviews.modified_time', 'reviews.mention_time') }} <= 86400
        then reviews.mention_time
    end as posted_time,
    case when reviews.has_task then 1 else 0 end as task,
    case when reviews.has_task and lower(trim(reviews.task_status)) = 'completed' then 1 else 0 end as closed_task
  from {{ ref('reviews_current') }} as reviews
)

select
  tasks.review_id,
  {{ feedback.local_month('tasks.posted_time') }} as month,
  tasks.mention_time,
  tasks.modified_time,
  coalesce(regions_by_id.region, regions_by_name.region, '(unknown)') as region,
  tasks.location_id,
  nullif(trim(tasks.location_name), '') as location_name,
  tasks.source_id,
  nullif(trim(tasks.source_name), '') as source_name,
  tasks.provider_id,
  nullif(trim(tasks.provider_name), '') as provider_name,
  nullif(trim(tasks.provider_npi), '') as provider_npi,
  tasks.task_id,
  tasks.task_status,
  nullif(trim(tasks.task_owner), '') as owner_name,
  nullif(trim(tasks.owner_email), '') as owner_email,
  tasks.task,
  tasks.task - tasks.closed_task as open_task,
  tasks.closed_task,
  case
    when tasks.posted_time <= {{ feedback.as_of() }}
      then {{ feedback.days_between('tasks.posted_time', feedback.as_of()) }}
  end as age_days,
  tasks.valid_rating as rating,
  tasks.valid_score as review_score,
  case
    when tasks.valid_score >= 4 then 'positive'
    when tasks.valid_score >= 2.5 then 'neutral'
    when tasks.valid_score < 2.5 then 'negative'
  end as sentiment,
  coalesce(liabilities.liabilities, 0) as liabilities,
  case when tasks.closed_task = 1 then 0 else coalesce(liabilities.liabilities, 0) end as open_liabilities,
  case when liabilities.grade > 0 then liabilities.grade end as severity_level,
  case liabilities.grade when 3 then 'high' when 2 then 'medium' when 1 then 'low' when 0 then 'other' end as severity,
  coalesce(engagements.engagements, 0) as engagements,
  engagements.first_response_time,
  engagements.last_engagement_time,
  case
    when engagements.first_response_time >= tasks.posted_time
      then {{ feedback.round_to(feedback.hours_between('tasks.posted_time', 'engagements.first_response_time'), 1) }}
  end as hours_to_answer
from tasks
left join engagements on engagements.review_id = tasks.review_id
left join liabilities on liabilities.review_id = tasks.review_id
left join regions_by_id on regions_by_id.location_id = tasks.location_id
left join regions_by_name on regions_by_name.folded_name = lower(trim(tasks.location_name))
