-- The net promoter score of each promoter question and month: 100 x (promoters - detractors) / answers. Its 95 %
-- interval is the adjusted Wald interval, which adds three answers: 0.75 promoters, 1.5 passives and 0.75 detractors.
-- Both are null below min_answers.
with adjusted as (
  select
    monthly.*,
    {{ feedback.as_double('monthly.promoters - monthly.detractors') }} / nullif(monthly.answers, 0) as score,
    {{ feedback.as_double('monthly.promoters - monthly.detractors') }} / (monthly.answers + 3) as middle,
    (monthly.promoters + monthly.detractors + 1.5) / {{ feedback.as_double('monthly.answers + 3') }} as spread,
    case
      when monthly.answers = 0 then 'no answers'
      when monthly.answers < {{ var('min_answers') }} then 'fewer than {{ var('min_answers') }} answers'
    end as gap
  from {{ ref('answers_monthly') }} as monthly
  where monthly.promoters is not null
),

estimated as (
  select adjusted.*, 1.96 * sqrt((spread - middle * middle) / (answers + 3)) as margin
  from adjusted
)

select
  estimated.scope,
  estimated.key,
  estimated.name,
  estimated.question_id,
  estimated.question,
  estimated.month,
  estimated.answers,
  estimated.promoters,
  estimated.answers - estimated.promoters - estimated.detractors as passives,
  estimated.detractors,
  case
    when estimated.gap is null
      then {{ feedback.round_to('100 * estimated.score', 1) }}
  end as nps,
  case
    when estimated.gap is null
      then {{ feedback.round_to('greatest(-100, 100 * (estimated.middle - estimated.margin))', 1) }}
  end as nps_low,
  case
    when estimated.gap is null
      then {{ feedback.round_to('least(100, 100 * (estimated.middle + estimated.margin))', 1) }}
  end as nps_high,
  estimated.gap
from estimated
