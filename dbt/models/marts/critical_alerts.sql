-- The reviews that someone should look at now, with the reasons: see the variables alert_open_days and alert_score.
with judged as (
  select
    facts.*,
    case
      when facts.open_task = 1 and facts.age_days >= {{ var('alert_open_days') }} then true
      else false
    end as is_overdue,
    case
      when facts.closed_task = 0 and facts.review_score < {{ var('alert_score') }} then true
      else false
    end as is_low_score,
    case when facts.open_liabilities > 0 and facts.severity_level = 3 then true else false end as is_high_liability
  from {{ ref('review_facts') }} as facts
)

select
  facts.is_overdue,
  facts.is_low_score,
  facts.is_high_liability,
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
from judged as facts
where facts.is_overdue or facts.is_low_score or facts.is_high_liability
