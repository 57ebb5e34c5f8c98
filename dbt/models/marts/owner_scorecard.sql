-- The tasks of each owner; name and address are null for tasks without an owner.
select
  owner_name,
  owner_email,
  count(*) as tasks,
  sum(open_task) as open_tasks,
  sum(closed_task) as closed_tasks,
  {{ feedback.share('sum(closed_task)', 'count(*)') }} as share_closed,
  max(case when open_task = 1 then age_days end) as oldest_open_days,
  {{ feedback.round_to(feedback.median('case when open_task = 1 then age_days end'), 1) }} as median_open_days,
  count(first_response_time) as answered,
  {{ feedback.share('count(first_response_time)', 'count(*)') }} as share_answered,
  {{ feedback.round_to(feedback.median('hours_to_answer'), 1) }} as median_hours_to_answer,
  count(rating) as rated,
  {{ feedback.round_to('avg(rating)', 2) }} as average_rating,
  {{ feedback.round_to('avg(review_score)', 2) }} as average_score,
  sum(case when sentiment = 'negative' then 1 else 0 end) as negative
from {{ ref('review_facts') }}
where task = 1
group by owner_name, owner_email
