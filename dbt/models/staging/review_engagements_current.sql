{%- if feedback.parts_of_reviews('engagements') %}
select
  engagements.review_id,
  engagements.position,
  {{ feedback.json_value('engagements.item', 'engagementTime', 'time') }} as engagement_time
from (
  {{ feedback.json_items(ref('stg_feedback__reviews'), ['review_id'], 'engagements') | indent(2) }}
) as engagements
{%- else %}
{{ feedback.current_parts('review_engagements', ['review_id', 'position'], [
  ['position', 'bigint', ['position']],
  ['engagement_time', 'time', ['engagementTime']],
]) }}
{%- endif %}
