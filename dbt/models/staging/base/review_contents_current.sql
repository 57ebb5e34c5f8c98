-- The questions and responses of the current reviews. A view: what reviewers wrote is kept in no table of the package
-- but with feedback_with_text.
select review_id, content_id, position, question_code, question, question_type, response
from {{ ref('stg_feedback__contents') }}
