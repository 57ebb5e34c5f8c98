-- The tasks that are not completed.
select
  facts.review_id,
  facts.task_id,
  facts.task_status,
  facts.owner_name,
  facts.owner_email,
  facts.region,
  facts.location_id,
  facts.location_name,
  facts.source_id,
  facts.source_name,
  facts.provider_id,
  facts.provider_name,
  facts.mention_time,
  facts.age_days,
  facts.rating,
  facts.review_score,
  facts.sentiment,
  facts.liabilities,
  facts.severity_level,
  facts.severity,
  facts.engagements,
  facts.last_engagement_time,
  facts.modified_time
from {{ ref('review_facts') }} as facts
where facts.open_task = 1
