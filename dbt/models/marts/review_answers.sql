-- One row for each answer to a question: its text, and what it says as a number, a date or a choice, by the type of
-- the question. Null where it is none such.
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
        then '> ' || coalesce(replace(question, '>', '>>'), '')
          || coalesce(' > ' || replace(question_type, '>', '>>'), '')
    end as question_id
  from answered
),

scaled as (
  select trim(question_id) as question_id
  from {{ ref('scales') }}
  group by trim(question_id)
),

-- The types in the service's specification. Nothing is known about answers to other types.
sorted_by_kind as (
  select
    keyed.*,
    case
      when lower(trim(keyed.question_type)) in ('promoter (radio)', 'promoter question (radio)') then 'promoter'
      when lower(trim(keyed.question_type)) in (
        'completion date (date field)', 'job hire date (text field)', 'member since (text field)'
      ) then 'date'
      when lower(trim(keyed.question_type)) in (
        'age (text field)', 'follower count (text field)', 'following count (text field)', 'free form (rating)',
        'friend count (text field)', 'klout score (text field)', 'review count (text field)',
        'single choice (number slider)', 'single choice (rating)', 'single choice (slider)'
      ) then 'number'
      when lower(trim(keyed.question_type)) in (
        'age (radio)', 'age group (select)', 'demographic ethnicity (select)', 'demographic gender (select)',
        'demographic language (select)', 'ethnicity (radio)', 'gender (radio)', 'location (radio)',
        'location info (radio)', 'multiple choice (checkbox)', 'new patient (radio)', 'physician (radio)',
        'procedure (radio)', 'publish (checkbox)', 'publishing site links (radio)', 'referring physician (radio)',
        'single choice (auto complete)', 'single choice (auto editable)', 'single choice (combo)',
        'single choice (radio)', 'state (select)'
      ) then 'choice'
      when lower(trim(keyed.question_type)) in (
        'address1 (text field)', 'address2 (text field)', 'address3 (text field)', 'author id (text field)',
        'avatarlink (text field)', 'city (text field)', 'country (text field)', 'county (text field)',
        'email (text area)', 'email (text field)', 'first name (text field)', 'free form (text area)',
        'free form (text field)', 'free from (text area)', 'free from (text field)', 'gender (text field)',
        'instruction', 'instructions', 'job discription (text field)', 'job title (text field)',
        'klout id (text field)', 'language (text field)', 'last name (text field)', 'location (text field)',
        'name (text area)', 'name (text field)', 'phone (text field)', 'publishing site link',
        'screen name (text field)', 'source path (text field)', 'state (text field)', 'zip code (text field)'
      ) then 'text'
    end as kind
  from keyed
),

typed as (
  select
    sorted_by_kind.*,
    case
      when scaled.question_id is not null or sorted_by_kind.kind in ('promoter', 'number') then 1
      else 0
    end as is_number
  from sorted_by_kind
  left join scaled on scaled.question_id = trim(sorted_by_kind.question_id)
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
