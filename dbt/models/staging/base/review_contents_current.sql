-- The questions and responses of the current reviews. A view, because no table of the package stores what reviewers
-- wrote unless feedback_with_text is set.
select review_id, content_id, position, question_code, question, question_type, response
from {{ ref('stg_feedback__contents') }}
