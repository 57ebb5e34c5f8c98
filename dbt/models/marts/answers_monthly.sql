-- The answers to each question that has a scale, by month: of all reviews, and of each region, location, provider and
-- source, which have every month from that of their first answer on. A place has the name of its review that changed
-- last.
with scales as (
  select question_id, question, best, nps_gap
  from {{ ref('question_scales') }}
  where gap is null
),

facts as (
  select
    review_id,
    month,
    modified_time,
    region,
    {{ feedback.as_text('location_id') }} as location_key,
    location_name,
    {{ feedback.as_text('provider_id') }} as provider_key,
    provider_name,
    {{ feedback.as_text('source_id') }} as source_key,
    source_name
  from {{ ref('review_facts') }}
),

scoped as (
  select
    review_id,
    month,
    modified_time,
    'all' as scope,
    {{ feedback.as_text('null') }} as key,
    {{ feedback.as_text('null') }} as name
  from facts
  union all
  select review_id, month, modified_time, 'region' as scope, region as key, region as name
  from facts
  union all
  select review_id, month, modified_time, 'location' as scope, location_key as key, location_name as name
  from facts
  union all
  select review_id, month, modified_time, 'provider' as scope, provider_key as key, provider_name as name
  from facts
  union all
  select review_id, month, modified_time, 'source' as scope, source_key as key, source_name as name
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

counted as (
  select
    scoped.scope,
    scoped.key,
    answers.question_id,
    scoped.month,
    count(*) as answers,
    sum(case when answers.answer_number = scales.best then 1 else 0 end) as best_answers,
    sum(case when answers.answer_number >= 9 then 1 else 0 end) as promoters,
    sum(case when answers.answer_number <= 6 then 1 else 0 end) as detractors
  from {{ ref('review_answers') }} as answers
  inner join scales on scales.question_id = answers.question_id
  inner join scoped on scoped.review_id = answers.review_id
  where scoped.month is not null
  group by scoped.scope, scoped.key, answers.question_id, scoped.month
),

asked as (
  select scope, key, question_id, min(month) as first_month
  from counted
  group by scope, key, question_id
),

grid as (
  select asked.scope, asked.key, asked.question_id, months.month
  from asked
  inner join {{ ref('months') }} as months on months.month >= asked.first_month
)

select
  grid.scope,
  grid.key,
  ranked.name,
  grid.question_id,
  scales.question,
  scales.best,
  grid.month,
  coalesce(counted.answers, 0) as answers,
  coalesce(counted.best_answers, 0) as best_answers,
  case when scales.nps_gap is null then coalesce(counted.promoters, 0) end as promoters,
  case when scales.nps_gap is null then coalesce(counted.detractors, 0) end as detractors
from grid
left join counted
  on counted.scope = grid.scope
  and coalesce(counted.key, '') = coalesce(grid.key, '')
  and counted.question_id = grid.question_id
  and counted.month = grid.month
left join ranked on ranked.scope = grid.scope and ranked.key = grid.key and ranked.place = 1
inner join scales on scales.question_id = grid.question_id
