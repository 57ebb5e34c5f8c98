-- A location has one region: neither its id nor its name (trimmed, ignoring case) occurs in two rows of regions.csv.
select {{ feedback.as_text('location_id') }} as location, count(*) as times
from {{ ref('regions') }}
where location_id is not null
group by location_id
having count(*) > 1
union all
select lower(trim(location_name)) as location, count(*) as times
from {{ ref('regions') }}
where location_name is not null
group by lower(trim(location_name))
having count(*) > 1
