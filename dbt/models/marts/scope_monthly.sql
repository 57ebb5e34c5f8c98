-- The figures of each month, of all reviews and of each region, location and source; region_monthly and others are parts of it.
with scoped as (
  select 'all' as scope, {{ feedback.as_text('null') }} as key, facts.*
  from {{ ref('review_facts') }} as facts
  union all
  select 'region' as scope, facts.region as key, facts.*
  from {{ ref('review_facts') }} as facts
  union all
  select 'location' as scope, {{ feedback.as_text('facts.location_id') }} as key, facts.*
  from {{ ref('review_facts') }} as facts
  union all
  select 'source' as scope, {{ feedback.as_text('facts.source_id') }} as key, facts.*
  from {{ ref('review_facts') }} as facts
)

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
  {{ feedback.share("sum(case when sentiment = 'negative' then 1 else 0 end)", 'count(sentiment)') }} as share_negative,
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
