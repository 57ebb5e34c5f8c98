-- The kind of answer to each question type of the service's specification, and its scale where the type has one.
select 'promoter (radio)' as question_type, 'promoter' as kind, 0 as lowest, 10 as highest
union all select 'promoter question (radio)', 'promoter', 0, 10
union all select 'age (text field)', 'number', null, null
union all select 'follower count (text field)', 'number', null, null
union all select 'following count (text field)', 'number', null, null
union all select 'free form (rating)', 'number', 1, 5
union all select 'friend count (text field)', 'number', null, null
union all select 'klout score (text field)', 'number', null, null
union all select 'review count (text field)', 'number', null, null
union all select 'single choice (number slider)', 'number', null, null
union all select 'single choice (rating)', 'number', 1, 5
union all select 'single choice (slider)', 'number', null, null
union all select 'completion date (date field)', 'date', null, null
union all select 'job hire date (text field)', 'date', null, null
union all select 'member since (text field)', 'date', null, null
union all select 'age (radio)', 'choice', null, null
union all select 'age group (select)', 'choice', null, null
union all select 'demographic ethnicity (select)', 'choice', null, null
union all select 'demographic gender (select)', 'choice', null, null
union all select 'demographic language (select)', 'choice', null, null
union all select 'ethnicity (radio)', 'choice', null, null
union all select 'gender (radio)', 'choice', null, null
union all select 'location (radio)', 'choice', null, null
union all select 'location info (radio)', 'choice', null, null
union all select 'multiple choice (checkbox)', 'choice', null, null
union all select 'new patient (radio)', 'choice', null, null
union all select 'physician (radio)', 'choice', null, null
union all select 'procedure (radio)', 'choice', null, null
union all select 'publish (checkbox)', 'choice', null, null
union all select 'publishing site links (radio)', 'choice', null, null
union all select 'referring physician (radio)', 'choice', null, null
union all select 'single choice (auto complete)', 'choice', null, null
union all select 'single choice (auto editable)', 'choice', null, null
union all select 'single choice (combo)', 'choice', null, null
union all select 'single choice (radio)', 'choice', null, null
union all select 'state (select)', 'choice', null, null
union all select 'address1 (text field)', 'text', null, null
union all select 'address2 (text field)', 'text', null, null
union all select 'address3 (text field)', 'text', null, null
union all select 'author id (text field)', 'text', null, null
union all select 'avatarlink (text field)', 'text', null, null
union all select 'city (text field)', 'text', null, null
union all select 'country (text field)', 'text', null, null
union all select 'county (text field)', 'text', null, null
union all select 'email (text area)', 'text', null, null
union all select 'email (text field)', 'text', null, null
union all select 'first name (text field)', 'text', null, null
union all select 'free form (text area)', 'text', null, null
union all select 'free form (text field)', 'text', null, null
union all select 'free from (text area)', 'text', null, null
union all select 'free from (text field)', 'text', null, null
union all select 'gender (text field)', 'text', null, null
union all select 'instruction', 'text', null, null
union all select 'instructions', 'text', null, null
union all select 'job discription (text field)', 'text', null, null
union all select 'job title (text field)', 'text', null, null
union all select 'klout id (text field)', 'text', null, null
union all select 'language (text field)', 'text', null, null
union all select 'last name (text field)', 'text', null, null
union all select 'location (text field)', 'text', null, null
union all select 'name (text area)', 'text', null, null
union all select 'name (text field)', 'text', null, null
union all select 'phone (text field)', 'text', null, null
union all select 'publishing site link', 'text', null, null
union all select 'screen name (text field)', 'text', null, null
union all select 'source path (text field)', 'text', null, null
union all select 'state (text field)', 'text', null, null
union all select 'zip code (text field)', 'text', null, null
