{%- set with_text = var('feedback_with_text') %}
{%- if feedback.parts_of_reviews('contents') %}
select
  liabilities.review_id,
  liabilities.content_id,
  {{ feedback.json_value('liabilities.item', 'liabilityId', 'bigint') }} as liability_id,
  {{ feedback.json_value('liabilities.item', 'severity.level', 'bigint') }} as severity_level,
  {{ feedback.json_value('liabilities.item', 'severity.name') }} as severity,
  {{ feedback.json_value('liabilities.item', 'categoryName') }} as category,
  {{ feedback.json_value('liabilities.item', 'justification') if with_text else feedback.null_of('text') }}
    as justification
from (
  {{ feedback.json_items(ref('stg_feedback__contents'), ['review_id', 'content_id'], 'liabilities') | indent(2) }}
) as liabilities
{%- else %}
select
  parts.review_id,
  parts.content_id,
  parts.liability_id,
  {{ feedback.json_value('parts.severity', 'level', 'bigint') }} as severity_level,
  {{ feedback.json_value('parts.severity', 'name') }} as severity,
  parts.category,
  {{ 'parts.justification' if with_text else feedback.null_of('text') }} as justification
from (
  {{ feedback.current_parts('review_liabilities', ['review_id', 'content_id', 'liability_id'], [
    ['content_id', 'bigint', ['contentId']],
    ['liability_id', 'bigint', ['liabilityId']],
    ['severity', 'json', ['severity']],
    ['category', 'text', ['categoryName']],
    ['justification', 'text', ['justification']],
  ]) | indent(2) }}
) as parts
{%- endif %}
