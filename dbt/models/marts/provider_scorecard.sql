-- The providers with at least min_reviews reviews. The estimate is a Bayesian mean: each provider starts with ten
-- ratings at the average of all reviews, with the spread of ratings from 1 to 5; low and high are the ends of its 95 %
-- interval.
with overall as (
  select
    avg(rating) as mean,
    sqrt((10 * 2 + count(rating) * coalesce(var_pop(rating), 0)) / (10 + count(rating))) as deviation
  from {{ ref('review_facts') }}
),

provider_names as (
  select
    provider_id,
    provider_name,
    row_number() over (partition by provider_id order by modified_time desc, provider_name) as place
  from {{ ref('review_facts') }}
  where provider_id is not null and provider_name is not null
),

provider_npis as (
  select
    provider_id,
    provider_npi,
    row_number() over (partition by provider_id order by modified_time desc, provider_npi) as place
  from {{ ref('review_facts') }}
  where provider_id is not null and provider_npi is not null
),

counted as (
  select
    provider_id,
    count(*) as reviews,
    count(rating) as rated,
    sum(rating) as total,
    avg(rating) as average_rating,
    avg(review_score) as average_score,
    sum(case when sentiment = 'positive' then 1 else 0 end) as positive,
    sum(case when sentiment = 'neutral' then 1 else 0 end) as neutral,
    sum(case when sentiment = 'negative' then 1 else 0 end) as negative
  from {{ ref('review_facts') }}
  where provider_id is not null
  group by provider_id
),

estimated as (
  select
    counted.*,
    case when counted.rated > 0 then (10 * overall.mean + counted.total) / (10 + counted.rated) end as estimate,
    1.96 * overall.deviation / sqrt(10 + counted.rated) as margin
  from counted
  cross join overall
  where counted.reviews >= {{ var('min_reviews') }}
)

select
  estimated.provider_id,
  provider_names.provider_name,
  provider_npis.provider_npi,
  estimated.reviews,
  estimated.rated,
  {{ feedback.round_to('estimated.average_rating', 2) }} as average_rating,
  case
    when estimated.rated > 0 then {{ feedback.round_to('least(5, greatest(0, estimated.estimate))', 2) }}
  end as rating_estimate,
  case
    when estimated.rated > 0
    then {{ feedback.round_to('least(5, greatest(0, estimated.estimate - estimated.margin))', 2) }}
  end as rating_low,
  case
    when estimated.rated > 0
    then {{ feedback.round_to('least(5, greatest(0, estimated.estimate + estimated.margin))', 2) }}
  end as rating_high,
  {{ feedback.round_to('estimated.average_score', 2) }} as average_score,
  estimated.positive,
  estimated.neutral,
  estimated.negative
from estimated
left join provider_names on provider_names.provider_id = estimated.provider_id and provider_names.place = 1
left join provider_npis on provider_npis.provider_id = estimated.provider_id and provider_npis.place = 1
