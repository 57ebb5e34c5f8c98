-- The last load of each stream of a snapshot is complete; other loaders keep no list of loads.
{{ config(enabled=var('feedback_loader') == 'snapshot') }}
select stream, status
from {{ source('feedback', '_loads') }}
where load in (select max(load) from {{ source('feedback', '_loads') }} group by stream)
  and status <> 'complete'
