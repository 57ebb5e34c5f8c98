-- The liabilities of reviews without a task, or whose task is not completed.
select
  liabilities.liability_id,
  liabilities.review_id,
  liabilities.content_id,
  liabilities.category,
  liabilities.severity_level,
  liabilities.severity,
  liabilities.justification,
  reviews.location_id,
  reviews.location_name,
  reviews.provider_name,
  reviews.mention_time,
  reviews.task_status,
  reviews.owner_name as task_owner
from {{ ref('review_liabilities_current') }} as liabilities
inner join {{ ref('review_facts') }} as reviews on reviews.review_id = liabilities.review_id
where reviews.closed_task = 0
