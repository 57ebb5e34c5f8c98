-- The newest version of each review that is not deleted. The later of a review and its deletion counts; if both have
-- the same time, the review does.
with versions as (
  select
    review_rows.*,
    row_number() over (partition by review_id order by modified_time desc, extracted_time desc) as version_rank
  from {{ ref('stg_feedback__review_rows') }} as review_rows
  where deleted_time is null
)

select
  versions.review_id,
  versions.modified_time,
  versions.mention_time,
  versions.rating,
  versions.review_score,
  versions.location,
  versions.provider,
  versions.source,
  versions.contents,
  versions.task_details,
  versions.engagements,
  versions.visit_record_id
from versions
left join {{ ref('stg_feedback__deletions') }} as deletions on deletions.review_id = versions.review_id
where versions.version_rank = 1
  and (deletions.deleted_time is null or deletions.deleted_time <= versions.modified_time)
