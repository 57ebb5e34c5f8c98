select
  {{ feedback.local_day('mention_time') }} as day,
  source_name,
  count(*) as reviews,
  count(rating) as rated,
  {{ feedback.round_to('avg(rating)', 2) }} as average_rating,
  {{ feedback.round_to('avg(review_score)', 2) }} as average_score,
  sum(case when review_score < 2.5 then 1 else 0 end) as negative
from {{ ref('reviews_current') }}
group by {{ feedback.local_day('mention_time') }}, source_name
