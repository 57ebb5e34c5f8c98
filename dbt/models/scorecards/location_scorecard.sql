-- Each location with its ratings, answers and open liabilities. It starts with ten ratings at the mean of all reviews,
-- with the spread of ratings from 1 to 5; low and high are the ends of the 95 % interval.
with facts as (
  select
    location_id,
    location_name,
    modified_time,
    mention_time,
    rating,
    review_score,
    first_response_time,
    hours_to_answer,
    open_liabilities
  from {{ ref('review_facts') }}
),

named as (
  select
    location_id,
    location_name,
    row_number() over (partition by location_id order by modified_time desc, location_name) as place
  from facts
  where location_id is not null and location_name is not null
),

overall as (
  select
    avg(rating) as mean,
    sqrt((20 + count(rating) * coalesce(var_pop(rating), 0)) / (10 + count(rating))) as deviation
  from facts
),

locations as (
  select
    location_id,
    count(*) as reviews,
    count(rating) as rated,
    avg(rating) as average_rating,
    sum(rating) as rating_sum,
    avg(review_score) as average_score,
    count(first_response_time) as answered,
    {{ feedback.median('hours_to_answer') }} as median_hours,
    sum(open_liabilities) as open_liabilities,
    max(mention_time) as last_mention
  from facts
  where location_id is not null
  group by location_id
),

estimates as (
  select
    locations.*,
    named.location_name,
    case
      when locations.rated > 0 then (10 * overall.mean + locations.rating_sum) / (10 + locations.rated)
    end as estimate,
    1.96 * overall.deviation / sqrt(10 + locations.rated) as margin
  from locations
  left join named on named.location_id = locations.location_id and named.place = 1
  cross join overall
)

select
  location_id,
  location_name,
  reviews,
  rated,
  {{ feedback.round_to('average_rating', 2) }} as average_rating,
  {{ feedback.round_to('estimate', 2) }} as rating_estimate,
  case
    when estimate is null then null
    when estimate - margin < 0 then 0
    else {{ feedback.round_to('estimate - margin', 2) }}
  end as rating_low,
  case
    when estimate is null then null
    when estimate + margin > 5 then 5
    else {{ feedback.round_to('estimate + margin', 2) }}
  end as rating_high,
  {{ feedback.round_to('average_score', 2) }} as average_score,
  {{ feedback.share('answered', 'reviews') }} as answered,
  {{ feedback.round_to('median_hours', 1) }} as median_hours_to_answer,
  {{ feedback.as_bigint('open_liabilities') }} as open_liabilities,
  last_mention
from estimates
