-- The reviews with an answer, and the hours from the review to its first one.
select review_id, location_id, location_name, source_name, mention_time, first_response_time, hours_to_answer as hours
from {{ ref('review_facts') }}
where first_response_time is not null
