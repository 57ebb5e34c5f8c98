{# A JSON column as one document, whichever type the loader used. #}
{% macro json_document(column, type) %}
  {{ return(adapter.dispatch('json_document', 'feedback')(column, type)) }}
{% endmacro %}

{% macro duckdb__json_document(column, type) %}
  {%- if type is none or type == 'JSON' %}{{ return('cast(' ~ column ~ ' as json)') }}
  {%- elif feedback.is_text(type) %}{{ return('try_cast(' ~ column ~ ' as json)') }}
  {%- else %}{{ return('to_json(' ~ column ~ ')') }}
  {%- endif %}
{% endmacro %}

{# Meltano's target writes a list as jsonb[], Airbyte as jsonb. #}
{% macro default__json_document(column, type) %}
  {%- if type is not none and feedback.is_text(type) %}{{ return('cast(' ~ column ~ ' as jsonb)') }}
  {%- else %}{{ return('to_jsonb(' ~ column ~ ')') }}
  {%- endif %}
{% endmacro %}

{% macro snowflake__json_document(column, type) %}
  {%- if type is not none and feedback.is_text(type) %}{{ return('try_parse_json(' ~ column ~ ')') }}
  {%- else %}{{ return('to_variant(' ~ column ~ ')') }}
  {%- endif %}
{% endmacro %}

{% macro bigquery__json_document(column, type) %}
  {%- if type is none or type == 'JSON' %}{{ return(column) }}
  {%- elif feedback.is_text(type) %}{{ return('safe.parse_json(' ~ column ~ ')') }}
  {%- else %}{{ return('to_json(' ~ column ~ ')') }}
  {%- endif %}
{% endmacro %}

{#
  The member at `path`, a dotted name, as a value of the type `name`; null if it is absent, null or of another type.
#}
{% macro json_value(document, path, name='text') %}
  {{ return(feedback.safe_cast_text(adapter.dispatch('json_text', 'feedback')(document, path.split('.')), name)) }}
{% endmacro %}

{% macro duckdb__json_text(document, path) %}
  {{ return('json_extract_string(' ~ document ~ ", '$." ~ path | join('.') ~ "')") }}
{% endmacro %}
{% macro default__json_text(document, path) %}
  {{ return('(' ~ document ~ " #>> '{" ~ path | join(',') ~ "}')") }}
{% endmacro %}
{% macro snowflake__json_text(document, path) %}
  {{ return('cast(get_path(' ~ document ~ ", '" ~ path | join('.') ~ "') as varchar)") }}
{% endmacro %}
{% macro bigquery__json_text(document, path) %}
  {{ return('json_value(' ~ document ~ ", '$." ~ path | join('.') ~ "')") }}
{% endmacro %}

{# A member that is an object or a list, as a document. #}
{% macro json_member(document, name) %}
  {{ return(adapter.dispatch('json_member', 'feedback')(document, name)) }}
{% endmacro %}
{% macro duckdb__json_member(document, name) %}
  {{ return('json_extract(' ~ document ~ ", '$." ~ name ~ "')") }}
{% endmacro %}
{% macro default__json_member(document, name) %}{{ return('(' ~ document ~ " -> '" ~ name ~ "')") }}{% endmacro %}
{% macro snowflake__json_member(document, name) %}
  {{ return('get_path(' ~ document ~ ", '" ~ name ~ "')") }}
{% endmacro %}
{% macro bigquery__json_member(document, name) %}
  {{ return('json_query(' ~ document ~ ", '$." ~ name ~ "')") }}
{% endmacro %}

{# True if a document is an object, and neither SQL's null nor JSON's. #}
{% macro json_is(document, kind) %}{{ return(adapter.dispatch('json_is', 'feedback')(document, kind)) }}{% endmacro %}
{% macro duckdb__json_is(document, kind) %}
  {{ return("coalesce(json_type(" ~ document ~ ") = '" ~ kind | upper ~ "', false)") }}
{% endmacro %}
{% macro default__json_is(document, kind) %}
  {{ return("coalesce(jsonb_typeof(" ~ document ~ ") = '" ~ kind ~ "', false)") }}
{% endmacro %}
{% macro snowflake__json_is(document, kind) %}
  {{ return("coalesce(typeof(" ~ document ~ ") = '" ~ kind | upper ~ "', false)") }}
{% endmacro %}
{% macro bigquery__json_is(document, kind) %}
  {{ return("coalesce(json_type(" ~ document ~ ") = '" ~ kind ~ "', false)") }}
{% endmacro %}

{# A row for each item of a list: the columns `keep`, the `position` from 0, and the `item` as a document. #}
{% macro json_items(relation, keep, document) %}
  {{ return(adapter.dispatch('json_items', 'feedback')(relation, keep, document)) }}
{% endmacro %}

{% macro duckdb__json_items(relation, keep, document) %}
{%- set list -%}
  case when {{ feedback.json_is('parent.' ~ document, 'array') }} then json_extract(parent.{{ document }}, '$[*]') end
{%- endset %}
select
  {%- for column in keep %}
  parent.{{ column }},
  {%- endfor %}
  generate_subscripts({{ list }}, 1) - 1 as position,
  unnest({{ list }}) as item
from {{ relation }} as parent
{%- endmacro %}

{% macro default__json_items(relation, keep, document) %}
select
  {%- for column in keep %}
  parent.{{ column }},
  {%- endfor %}
  items.place - 1 as position,
  items.item
from {{ relation }} as parent
cross join lateral jsonb_array_elements(
  case when {{ feedback.json_is('parent.' ~ document, 'array') }} then parent.{{ document }} end
) with ordinality as items (item, place)
{%- endmacro %}

{% macro snowflake__json_items(relation, keep, document) %}
select
  {%- for column in keep %}
  parent.{{ column }},
  {%- endfor %}
  items.index as position,
  items.value as item
from {{ relation }} as parent,
lateral flatten(
  input => case when {{ feedback.json_is('parent.' ~ document, 'array') }} then parent.{{ document }} end
) as items
{%- endmacro %}

{% macro bigquery__json_items(relation, keep, document) %}
select
  {%- for column in keep %}
  parent.{{ column }},
  {%- endfor %}
  position,
  item
from {{ relation }} as parent
cross join unnest(json_query_array(parent.{{ document }})) as item with offset as position
{%- endmacro %}

{# True if part of a text matches a regular expression without backslashes. #}
{% macro matches(expression, pattern) %}
  {{ return(adapter.dispatch('matches', 'feedback')(expression, pattern)) }}
{% endmacro %}
{% macro duckdb__matches(expression, pattern) %}
  {{ return('regexp_matches(' ~ expression ~ ", '" ~ pattern ~ "')") }}
{% endmacro %}
{% macro default__matches(expression, pattern) %}{{ return('(' ~ expression ~ " ~ '" ~ pattern ~ "')") }}{% endmacro %}
{% macro snowflake__matches(expression, pattern) %}
  {{ return('(regexp_instr(' ~ expression ~ ", '" ~ pattern ~ "') > 0)") }}
{% endmacro %}
{% macro bigquery__matches(expression, pattern) %}
  {{ return('regexp_contains(' ~ expression ~ ", r'" ~ pattern ~ "')") }}
{% endmacro %}

{# A line break as a constant. #}
{% macro newline() %}{{ return("'\\n'" if target.type in ['snowflake', 'bigquery'] else 'chr(10)') }}{% endmacro %}
