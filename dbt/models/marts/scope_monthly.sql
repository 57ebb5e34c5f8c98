-- The figures of each month, of all reviews and of each region, location and source; region_monthly and others are
-- parts of it. A location and a source have the name of their review that changed last.
with facts as (
  select
    month,
    region,
    {{ feedback.as_text('location_id') }} as location_key,
    location_name,
    {{ feedback.as_text('source_id') }} as source_key,
    source_name,
    modified_time,
    rating,
    review_score,
    sentiment,
    task,
    open_task,
    closed_task,
    age_days,
    first_response_time,
    hours_to_answer,
    open_liabilities
  from {{ ref('review_facts') }}
),

scoped as (
  select 'all' as scope, {{ feedback.as_text('null') }} as key, {{ feedback.as_text('null') }} as name, facts.*
  from facts
  union all
  select 'region' as scope, facts.region as key, facts.region as name, facts.*
  from facts
  union all
  select 'location' as scope, facts.location_key as key, facts.location_name as name, facts.*
  from facts
  union all
  select 'source' as scope, facts.source_key as key, facts.source_name as name, facts.*
  from facts
),

named as (
  select scope, key, name, max(modified_time) as modified_time
  from scoped
  where key is not null and name is not null
  group by scope, key, name
),

ranked as (
  select scope, key, name, row_number() over (partition by scope, key order by modified_time desc, name) as place
  from named
),

figures as (
  select
    scope,
    key,
    month,
    count(*) as reviews,
    count(rating) as rated,
    {{ feedback.round_to('avg(rating)', 2) }} as average_rating,
    {{ feedback.round_to('avg(review_score)', 2) }} as average_score,
    sum(case when sentiment = 'positive' then 1 else 0 end) as positive,
    sum(case when sentiment = 'neutral' then 1 else 0 end) as neutral,
    sum(case when sentiment = 'negative' then 1 else 0 end) as negative,
    {{ feedback.share("sum(case when sentiment = 'negative' then 1 else 0 end)", 'count(sentiment)') }}
      as share_negative,
    sum(task) as tasks,
    sum(open_task) as open_tasks,
    sum(closed_task) as closed_tasks,
    {{ feedback.share('sum(closed_task)', 'sum(task)') }} as share_closed,
    count(first_response_time) as answered,
    {{ feedback.share('count(first_response_time)', 'count(*)') }} as share_answered,
    {{ feedback.round_to(feedback.median('hours_to_answer'), 1) }} as median_hours_to_answer,
    sum(open_liabilities) as open_liabilities,
    max(case when open_task = 1 then age_days end) as oldest_open_days
  from scoped
  where month is not null
  group by scope, key, month
)

select
  figures.scope,
  figures.key,
  ranked.name,
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
from figures
left join ranked on ranked.scope = figures.scope and ranked.key = figures.key and ranked.place = 1
