-- The sentiments of each category and sub-category by month. Sentiments with another tonality count only in sentiments.
select
  facts.month,
  nullif(trim(sentiments.category), '') as category,
  nullif(trim(sentiments.sub_category), '') as sub_category,
  count(distinct sentiments.review_id) as reviews,
  count(*) as sentiments,
  sum(case when lower(trim(sentiments.tonality)) = 'positive' then 1 else 0 end) as positive,
  sum(case when lower(trim(sentiments.tonality)) = 'neutral' then 1 else 0 end) as neutral,
  sum(case when lower(trim(sentiments.tonality)) = 'negative' then 1 else 0 end) as negative,
  {{ feedback.round_to('avg(case when sentiments.score between 0 and 5 then sentiments.score end)', 2) }}
    as average_score
from {{ ref('review_sentiments_current') }} as sentiments
inner join {{ ref('review_facts') }} as facts on facts.review_id = sentiments.review_id
where facts.month is not null
group by facts.month, nullif(trim(sentiments.category), ''), nullif(trim(sentiments.sub_category), '')
