-- One row for each current review, its nested values as columns.
{%- set with_text = var('feedback_with_text') %}
{%- set has_tasks = feedback.parts_of_reviews('taskDetails') %}
select
  reviews.review_id,
  reviews.mention_time,
  reviews.modified_time,
  nullif(reviews.rating, 0) as rating,
  reviews.review_score,
  {{ feedback.json_value('reviews.location', 'id', 'bigint') }} as location_id,
  {{ feedback.json_value('reviews.location', 'name') }} as location_name,
  {{ feedback.json_value('reviews.provider', 'id', 'bigint') }} as provider_id,
  {{ feedback.json_value('reviews.provider', 'name') }} as provider_name,
  {{ feedback.json_value('reviews.provider', 'npi') }} as provider_npi,
  {{ feedback.json_value('reviews.source', 'id', 'bigint') }} as source_id,
  {{ feedback.json_value('reviews.source', 'name') }} as source_name,
  {{ 'texts.text' if with_text else feedback.null_of('text') }} as text,
  {%- if has_tasks %}
  {{ feedback.json_value('reviews.task_details', 'id', 'bigint') }} as task_id,
  {{ feedback.json_value('reviews.task_details', 'status') }} as task_status,
  {{ feedback.json_value('reviews.task_details', 'ownerName') }} as task_owner,
  {{ feedback.json_value('reviews.task_details', 'ownerEmail') }} as owner_email,
  {{ feedback.json_is('reviews.task_details', 'object') }} as has_task,
  {%- else %}
  tasks.task_id,
  tasks.task_status,
  tasks.task_owner,
  tasks.owner_email,
  case when tasks.review_id is null then false else true end as has_task,
  {%- endif %}
  nullif(reviews.visit_record_id, '') as visit_record_id
from {{ ref('stg_feedback__reviews') }} as reviews
{%- if not has_tasks %}
left join (
  {{ feedback.current_parts('review_tasks', ['review_id'], [
    ['task_id', 'bigint', ['id']],
    ['task_status', 'text', ['status']],
    ['task_owner', 'text', ['ownerName']],
    ['owner_email', 'text', ['ownerEmail']],
  ]) | indent(2) }}
) as tasks on tasks.review_id = reviews.review_id
{%- endif %}
{%- if with_text %}
left join {{ ref('stg_feedback__texts') }} as texts on texts.review_id = reviews.review_id
{%- endif %}
