-- The reviews of each source and month; those without a source have a row whose id is null.
select
  {{ feedback.as_bigint('figures.key') }} as source_id,
  figures.name as source_name,
  figures.month,
  figures.reviews,
  figures.rated,
  figures.average_rating,
  figures.average_score,
  figures.positive,
  figures.neutral,
  figures.negative,
  figures.share_negative,
  figures.tasks,
  figures.open_tasks,
  figures.closed_tasks,
  figures.share_closed,
  figures.answered,
  figures.share_answered,
  figures.median_hours_to_answer,
  figures.open_liabilities,
  figures.oldest_open_days
from {{ ref('scope_monthly') }} as figures
where figures.scope = 'source'
