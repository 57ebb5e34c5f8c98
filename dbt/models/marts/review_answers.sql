-- One row for each answer to a question: its text, and what it says as a number, a date or a choice, by the type of the question. Null where
-- it is none such.
with answered as (
  select
    contents.review_id,
    contents.content_id,
    contents.position,
    case when trim(contents.question_code) <> '' then contents.question_code end as question_code,
    case when trim(contents.question) <> '' then contents.question end as question,
    case when trim(contents.question_type) <> '' then contents.question_type end as question_type,
    trim(contents.response) as response
  from {{ ref('review_contents_current') }} as contents
  where trim(contents.response) <> ''
),

-- The key of the stream questions.
keyed as (
  select
    answered.*,
    case
      when question_code is not null then replace(question_code, '>', '>>')
      when question is not null or question_type is not null
        then '> ' || coalesce(replace(question, '>', '>>'), '') || coalesce(' > ' || replace(question_type, '>', '>>'), '')
    end as question_id
  from answered
),

scaled as (
  select trim(question_id) as question_id
  from {{ ref('scales') }}
  group by trim(question_id)
),

typed as (
  select
    keyed.*,
    types.kind,
    case when scaled.question_id is not null or types.kind in ('promoter', 'number') then 1 else 0 end as is_number
  from keyed
  left join {{ ref('question_types') }} as types on types.question_type = lower(trim(keyed.question_type))
  left join scaled on scaled.question_id = trim(keyed.question_id)
),

parsed as (
  select
    typed.*,
    case when is_number = 1 then {{ feedback.number_of('response') }} end as answer_number,
    case when kind = 'date' then {{ feedback.date_of('response') }} end as answer_date
  from typed
)

select
  parsed.review_id,
  parsed.content_id,
  parsed.position,
  parsed.question_id,
  parsed.question_code,
  parsed.question,
  parsed.question_type,
  parsed.kind,
  case
    when parsed.kind in ('promoter', 'number', 'date', 'choice') then parsed.response
    else {{ feedback.kept_text('parsed.response') }}
  end as answer,
  parsed.answer_number,
  parsed.answer_date,
  case when parsed.kind = 'choice' then parsed.response end as answer_choice,
  case
    when parsed.is_number = 1 then case when parsed.answer_number is not null then 1 else 0 end
    when parsed.kind = 'date' then case when parsed.answer_date is not null then 1 else 0 end
    when parsed.kind is not null then 1
  end as parsed
from parsed
