-- The questions and responses of the current reviews, with their sentiments and liabilities as documents where these
-- come from `reviews`.
{%- if feedback.parts_of_reviews('contents') %}
select
  contents.review_id,
  contents.position,
  {{ feedback.json_value('contents.item', 'id', 'bigint') }} as content_id,
  {{ feedback.json_value('contents.item', 'response') }} as response,
  {{ feedback.json_value('contents.item', 'question') }} as question,
  {{ feedback.json_value('contents.item', 'questionType') }} as question_type,
  {{ feedback.json_value('contents.item', 'questionCode') }} as question_code,
  {{ feedback.json_member('contents.item', 'sentiments') }} as sentiments,
  {{ feedback.json_member('contents.item', 'liabilities') }} as liabilities
from (
  {{ feedback.json_items(ref('stg_feedback__reviews'), ['review_id'], 'contents') | indent(2) }}
) as contents
{%- else %}
-- The table has no position, but the service numbers the contents of a review in order.
select contents.*, row_number() over (partition by contents.review_id order by contents.content_id) - 1 as position
from (
  {{ feedback.current_parts('review_contents', ['review_id', 'content_id'], [
    ['content_id', 'bigint', ['id']],
    ['response', 'text', ['response']],
    ['question', 'text', ['question']],
    ['question_type', 'text', ['questionType']],
    ['question_code', 'text', ['questionCode']],
  ]) | indent(2) }}
) as contents
{%- endif %}
