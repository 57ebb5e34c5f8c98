-- What reviewers wrote, one line for each response. A number, or the answer to a rating question, is left out unless
-- the question is a free-form one.
{%- set number = '[-+]?[0-9]+([.,][0-9]+)?[[:space:]]*(%|(/|of|out of)[[:space:]]*[0-9]+)?' %}
{%- set rating_types = 'rating|scale|score|nps|number|numeric|rank|slider' %}
with responses as (
  select
    review_id,
    position,
    response,
    coalesce(lower(question_type) like 'free form%', false) as is_free,
    {{ feedback.matches('response', '^[[:space:]]*' ~ number ~ '[[:space:]]*$') }} as is_number,
    coalesce({{ feedback.matches('lower(question_type)', rating_types) }}, false) as is_rating
  from {{ ref('stg_feedback__contents') }}
),

written as (
  select review_id, {{ dbt.listagg('response', feedback.newline(), 'order by position') }} as text
  from responses
  where response is not null and (is_free or not (is_number or is_rating))
  group by review_id
)

{%- if feedback.parts_of_reviews('contents') %}
select
  reviews.review_id,
  case when {{ feedback.json_is('reviews.contents', 'array') }} then coalesce(written.text, '') end as text
from {{ ref('stg_feedback__reviews') }} as reviews
left join written on written.review_id = reviews.review_id
{%- else %}
select review_id, text from written
{%- endif %}
