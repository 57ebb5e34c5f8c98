-- The share of the best answer to each question that has a scale, by month, with Wilson's 95 % interval. Both are
-- null below min_answers.
with shares as (
  select
    monthly.*,
    {{ feedback.as_double('monthly.best_answers') }} / nullif(monthly.answers, 0) as part,
    3.8416 / nullif({{ feedback.as_double('monthly.answers') }}, 0) as weight,
    case
      when monthly.answers = 0 then 'no answers'
      when monthly.answers < {{ var('min_answers') }} then 'fewer than {{ var('min_answers') }} answers'
    end as gap
  from {{ ref('answers_monthly') }} as monthly
),

estimated as (
  select
    shares.*,
    (part + weight / 2) / (1 + weight) as middle,
    sqrt(weight * (part * (1 - part) + weight / 4)) / (1 + weight) as margin
  from shares
)

select
  estimated.scope,
  estimated.key,
  estimated.name,
  estimated.question_id,
  estimated.question,
  estimated.best,
  estimated.month,
  estimated.answers,
  estimated.best_answers,
  case
    when estimated.gap is null
      then {{ feedback.round_to('estimated.part', 2) }}
  end as share_best,
  case
    when estimated.gap is null
      then {{ feedback.round_to('estimated.middle - estimated.margin', 2) }}
  end as share_low,
  case
    when estimated.gap is null
      then {{ feedback.round_to('estimated.middle + estimated.margin', 2) }}
  end as share_high,
  estimated.gap
from estimated
