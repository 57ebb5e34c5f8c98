-- Each question with the share of its answers that could be read, its scale, and why it is left out of figures, if it
-- is.
with given as (
  select
    trim(question_id) as question_id,
    count(*) as scales,
    min(lowest) as lowest,
    max(highest) as highest,
    max(best) as best
  from {{ ref('scales') }}
  group by trim(question_id)
),

asked as (
  select
    answers.question_id,
    answers.question,
    answers.question_type,
    answers.kind,
    answers.answer_number,
    answers.parsed,
    row_number() over (
      partition by answers.question_id
      order by facts.modified_time desc, coalesce(answers.question, ''), coalesce(answers.question_type, '')
    ) as place
  from {{ ref('review_answers') }} as answers
  inner join {{ ref('review_facts') }} as facts on facts.review_id = answers.review_id
  where answers.question_id is not null
),

newest as (
  select
    asked.*,
    case
      when kind = 'promoter' then 0
      when kind = 'number' and lower(trim(question_type)) like '%(rating)' then 1
    end as type_lowest,
    case
      when kind = 'promoter' then 10
      when kind = 'number' and lower(trim(question_type)) like '%(rating)' then 5
    end as type_highest
  from asked
  where place = 1
),

-- A given scale takes precedence over that of the type.
scaled as (
  select
    newest.question_id,
    newest.question,
    newest.question_type,
    newest.kind,
    coalesce(given.scales, 0) as scales,
    coalesce(given.lowest, newest.type_lowest) as lowest,
    coalesce(given.highest, newest.type_highest) as highest,
    coalesce(given.best, given.highest, newest.type_highest) as best
  from newest
  left join given on given.question_id = trim(newest.question_id)
),

counted as (
  select
    scaled.question_id,
    count(*) as answers,
    sum(answers.parsed) as parsed,
    min(answers.answer_number) as lowest_answer,
    max(answers.answer_number) as highest_answer,
    sum(case
      when answers.answer_number between scaled.lowest and scaled.highest
        and (scaled.kind <> 'promoter' or scaled.kind is null or floor(answers.answer_number) = answers.answer_number)
        then 0
      else 1
    end) as unfitting
  from scaled
  inner join asked as answers on answers.question_id = scaled.question_id
  group by scaled.question_id
),

judged as (
  select
    scaled.*,
    counted.answers,
    counted.parsed,
    counted.lowest_answer,
    counted.highest_answer,
    counted.unfitting,
    case
      when scaled.scales > 1 then 'several scales are given'
      when scaled.lowest is null or scaled.highest is null then 'no scale is known'
      when scaled.lowest >= scaled.highest or scaled.best < scaled.lowest or scaled.best > scaled.highest
        then 'the scale that is given is none'
      when counted.unfitting > 0
        then {{ feedback.as_text('counted.unfitting') }} || ' of '
          || {{ feedback.as_text('counted.answers') }} || ' answers do not fit the scale'
    end as gap
  from scaled
  inner join counted on counted.question_id = scaled.question_id
)

select
  judged.question_id,
  judged.question,
  judged.question_type,
  judged.kind,
  judged.answers,
  judged.parsed,
  {{ feedback.share('judged.parsed', 'judged.answers') }} as share_parsed,
  judged.lowest_answer,
  judged.highest_answer,
  {{ feedback.as_double('judged.lowest') }} as lowest,
  {{ feedback.as_double('judged.highest') }} as highest,
  {{ feedback.as_double('judged.best') }} as best,
  judged.gap,
  case
    when judged.kind = 'promoter' and judged.gap is null
      then case when judged.lowest <> 0 or judged.highest <> 10 or judged.best <> 10 then 'the scale is not 0 to 10' end
    when judged.kind = 'promoter' then judged.gap
    else 'no promoter question'
  end as nps_gap
from judged
