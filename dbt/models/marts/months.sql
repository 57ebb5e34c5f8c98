-- Every month from the first to the last of all reviews, including those without reviews.
with digits as (
  select 0 as n
  union all select 1
  union all select 2
  union all select 3
  union all select 4
  union all select 5
  union all select 6
  union all select 7
  union all select 8
  union all select 9
),

found as (
  select distinct month
  from {{ ref('review_facts') }}
  where month is not null
),

bounds as (
  select min(month) as first_month, max(month) as last_month
  from found
),

-- The last thousand months, and every older month that has reviews.
counted_back as (
  select {{ feedback.add_months('bounds.last_month', '-(hundreds.n * 100 + tens.n * 10 + ones.n)') }} as month
  from bounds
  cross join digits as hundreds
  cross join digits as tens
  cross join digits as ones
)

select counted_back.month
from counted_back
inner join bounds on counted_back.month >= bounds.first_month
union all
select older.month
from found as older
where older.month < (select min(counted_back.month) from counted_back)
