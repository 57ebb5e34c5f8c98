-- Every figure beside that of the month before. Each region, location and source has all months from its first to the
-- last of all reviews: without reviews a count is 0, and an average is null. Its first month has no month before.
with monthly as (
  select *
  from {{ ref('scope_monthly') }}
),

keys as (
  select scope, key, max(name) as name, min(month) as first_month
  from monthly
  group by scope, key
),

grid as (
  select keys.scope, keys.key, keys.name, months.month
  from keys
  cross join {{ ref('months') }} as months
  where months.month >= keys.first_month
),

figures as (
  select
    grid.scope,
    grid.key,
    grid.name,
    grid.month,
    coalesce(found.reviews, 0) as reviews,
    coalesce(found.rated, 0) as rated,
    found.average_rating,
    found.average_score,
    coalesce(found.positive, 0) as positive,
    coalesce(found.neutral, 0) as neutral,
    coalesce(found.negative, 0) as negative,
    found.share_negative,
    coalesce(found.tasks, 0) as tasks,
    coalesce(found.open_tasks, 0) as open_tasks,
    coalesce(found.closed_tasks, 0) as closed_tasks,
    found.share_closed,
    coalesce(found.answered, 0) as answered,
    found.share_answered,
    found.median_hours_to_answer,
    coalesce(found.open_liabilities, 0) as open_liabilities,
    found.oldest_open_days
  from grid
  left join monthly as found
    on found.scope = grid.scope
    and coalesce(found.key, '') = coalesce(grid.key, '')
    and found.month = grid.month
),

metrics as (
  select 'reviews' as metric
  union all select 'rated'
  union all select 'average_rating'
  union all select 'average_score'
  union all select 'positive'
  union all select 'neutral'
  union all select 'negative'
  union all select 'share_negative'
  union all select 'tasks'
  union all select 'open_tasks'
  union all select 'closed_tasks'
  union all select 'share_closed'
  union all select 'answered'
  union all select 'share_answered'
  union all select 'median_hours_to_answer'
  union all select 'open_liabilities'
  union all select 'oldest_open_days'
),

listed as (
  select
    figures.scope,
    figures.key,
    figures.name,
    figures.month,
    metrics.metric,
    {{ feedback.as_double("case metrics.metric
      when 'reviews' then figures.reviews
      when 'rated' then figures.rated
      when 'average_rating' then figures.average_rating
      when 'average_score' then figures.average_score
      when 'positive' then figures.positive
      when 'neutral' then figures.neutral
      when 'negative' then figures.negative
      when 'share_negative' then figures.share_negative
      when 'tasks' then figures.tasks
      when 'open_tasks' then figures.open_tasks
      when 'closed_tasks' then figures.closed_tasks
      when 'share_closed' then figures.share_closed
      when 'answered' then figures.answered
      when 'share_answered' then figures.share_answered
      when 'median_hours_to_answer' then figures.median_hours_to_answer
      when 'open_liabilities' then figures.open_liabilities
      when 'oldest_open_days' then figures.oldest_open_days
    end") }} as value
  from figures
  cross join metrics
),

compared as (
  select
    listed.*,
    lag(listed.month) over (
      partition by listed.scope, listed.key, listed.metric
      order by listed.month
    ) as previous_month,
    lag(listed.value) over (partition by listed.scope, listed.key, listed.metric order by listed.month) as last_value
  from listed
),

paired as (
  select
    compared.*,
    case
      when {{ feedback.add_months('compared.previous_month', 1) }} = compared.month then compared.last_value
    end as previous_value
  from compared
)

select
  paired.scope,
  paired.key,
  paired.name,
  paired.month,
  paired.metric,
  paired.value,
  paired.previous_value,
  {{ feedback.round_to('paired.value - paired.previous_value', 2) }} as change
from paired
