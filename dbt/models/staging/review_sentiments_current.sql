{%- if feedback.parts_of_reviews('contents') %}
select
  sentiments.review_id,
  sentiments.content_id,
  {{ feedback.json_value('sentiments.item', 'id', 'bigint') }} as sentiment_id,
  {{ feedback.json_value('sentiments.item', 'score', 'double') }} as score,
  {{ feedback.json_value('sentiments.item', 'category') }} as category,
  {{ feedback.json_value('sentiments.item', 'subCategory') }} as sub_category,
  {{ feedback.json_value('sentiments.item', 'tonality') }} as tonality
from (
  {{ feedback.json_items(ref('stg_feedback__contents'), ['review_id', 'content_id'], 'sentiments') | indent(2) }}
) as sentiments
{%- else %}
{{ feedback.current_parts('review_sentiments', ['review_id', 'content_id', 'sentiment_id'], [
  ['content_id', 'bigint', ['contentId']],
  ['sentiment_id', 'bigint', ['id']],
  ['score', 'double', ['score']],
  ['category', 'text', ['category']],
  ['sub_category', 'text', ['subCategory']],
  ['tonality', 'text', ['tonality']],
]) }}
{%- endif %}
