-- The reviews of each day and source. The day is null if the time of mention is impossible.
with dated as (
  select
    case when month is not null then {{ feedback.local_day('mention_time') }} end as day,
    source_name,
    rating,
    review_score,
    sentiment
  from {{ ref('review_facts') }}
)

select
  day,
  source_name,
  count(*) as reviews,
  count(rating) as rated,
  {{ feedback.round_to('avg(rating)', 2) }} as average_rating,
  {{ feedback.round_to('avg(review_score)', 2) }} as average_score,
  {{ feedback.as_bigint("sum(case when sentiment = 'negative' then 1 else 0 end)") }} as negative
from dated
group by day, source_name
