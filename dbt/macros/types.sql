{# Types by the names that the package uses: bigint, double, text, time (an instant), date. #}
{% macro type_of(name) %}{{ return(adapter.dispatch('type_of', 'feedback')(name)) }}{% endmacro %}

{% macro default__type_of(name) %}
  {{ return({
    'bigint': 'bigint',
    'double': 'double precision',
    'text': 'varchar',
    'time': 'timestamptz',
    'date': 'date',
    'json': 'jsonb',
  }[name]) }}
{% endmacro %}

{% macro duckdb__type_of(name) %}
  {{ return({
    'bigint': 'bigint',
    'double': 'double',
    'text': 'varchar',
    'time': 'timestamptz',
    'date': 'date',
    'json': 'json',
  }[name]) }}
{% endmacro %}

{# A time is a TIMESTAMP_NTZ in UTC, since a TIMESTAMP_TZ keeps the offset it came with. #}
{% macro snowflake__type_of(name) %}
  {{ return({
    'bigint': 'number(38, 0)',
    'double': 'float',
    'text': 'varchar',
    'time': 'timestamp_ntz',
    'date': 'date',
    'json': 'variant',
  }[name]) }}
{% endmacro %}

{% macro bigquery__type_of(name) %}
  {{ return({
    'bigint': 'int64',
    'double': 'float64',
    'text': 'string',
    'time': 'timestamp',
    'date': 'date',
    'json': 'json',
  }[name]) }}
{% endmacro %}

{% macro null_of(name) %}cast(null as {{ feedback.type_of(name) }}){% endmacro %}

{# Casts of text that may not be such a value, which then becomes null. #}
{% macro safe_cast_text(expression, name) %}
  {{ return(adapter.dispatch('safe_cast_text', 'feedback')(expression, name)) }}
{% endmacro %}

{% macro duckdb__safe_cast_text(expression, name) %}
  {%- if name == 'text' %}{{ return(expression) }}{% endif -%}
  {{ return('try_cast(' ~ expression ~ ' as ' ~ feedback.type_of(name) ~ ')') }}
{% endmacro %}

{# PostgreSQL has no cast that fails quietly, and only CASE guarantees the order of tests. #}
{% macro default__safe_cast_text(expression, name) %}
  {%- if name == 'text' %}{{ return(expression) }}
  {%- elif name == 'bigint' %}
    {{ return(
      "case when " ~ expression ~ " ~ '^-?[0-9]{1,19}$' then"
      ~ " case when cast(" ~ expression ~ " as numeric) between -9223372036854775808 and 9223372036854775807"
      ~ " then cast(" ~ expression ~ " as bigint) end end"
    ) }}
  {%- elif name == 'double' %}
    {{ return(
      "case when " ~ expression ~ " ~ '^-?[0-9]{1,18}([.][0-9]{1,30})?([eE][-+]?[0-9]{1,2})?$'"
      ~ " then cast(" ~ expression ~ " as double precision) end"
    ) }}
  {%- else %}
    {%- set day = '[0-9]{4}-[0-9]{2}-[0-9]{2}' %}
    {%- set time = '[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?' %}
    {%- set zone = '(Z|[-+][0-9]{2}(:?[0-9]{2})?)' %}
    {{ return(
      "case when " ~ expression ~ " ~ '^" ~ day ~ "[T ]" ~ time ~ zone ~ "$'"
      ~ " then cast(" ~ expression ~ " as timestamptz) end"
    ) }}
  {%- endif %}
{% endmacro %}

{% macro snowflake__safe_cast_text(expression, name) %}
  {%- if name == 'text' %}{{ return(expression) }}
  {%- elif name == 'bigint' %}{{ return('try_to_number(' ~ expression ~ ', 38, 0)') }}
  {%- elif name == 'double' %}{{ return('try_to_double(' ~ expression ~ ')') }}
  {%- else %}{{ return("cast(convert_timezone('UTC', try_to_timestamp_tz(" ~ expression ~ ')) as timestamp_ntz)') }}
  {%- endif %}
{% endmacro %}

{% macro bigquery__safe_cast_text(expression, name) %}
  {%- if name == 'text' %}{{ return(expression) }}{% endif -%}
  {{ return('safe_cast(' ~ expression ~ ' as ' ~ feedback.type_of(name) ~ ')') }}
{% endmacro %}

{#
  A column as the package uses it. `type`: the column's type in the warehouse, in upper case, or none if it could not be
  looked up.
#}
{% macro cast_column(column, type, name) %}
  {%- if name == 'json' %}{{ return(feedback.json_document(column, type)) }}
  {%- elif name != 'time' %}{{ return('cast(' ~ column ~ ' as ' ~ feedback.type_of(name) ~ ')') }}
  {%- elif type is not none and feedback.is_text(type) %}{{ return(feedback.safe_cast_text(column, 'time')) }}
  {%- else %}{{ return(adapter.dispatch('to_instant', 'feedback')(column, type)) }}
  {%- endif %}
{% endmacro %}

{#
  The zone of a column of times without one. Meltano's target for PostgreSQL writes the zone of its session; PyAirbyte
  does so only in _airbyte_extracted_at, and writes UTC otherwise.
#}
{% macro naive_time_zone(column) %}
  {%- set is_pyairbyte = var('feedback_loader', 'airbyte') == 'pyairbyte' %}
  {%- set is_always_utc = is_pyairbyte and '_airbyte_extracted_at' not in column | lower %}
  {{- return('UTC' if is_always_utc else var('feedback_naive_time_zone', 'UTC')) }}
{% endmacro %}

{# Meltano's and PyAirbyte's loaders write times without a zone, Airbyte's with one. #}
{% macro writes_naive_times() %}
  {{ return(var('feedback_loader', 'airbyte') in ['meltano', 'pyairbyte']) }}
{% endmacro %}

{% macro is_text(type) %}{{ return('CHAR' in type or type in ['TEXT', 'STRING']) }}{% endmacro %}

{% macro default__to_instant(column, type) %}
  {%- set naive_types = [
    'TIMESTAMP', 'TIMESTAMP WITHOUT TIME ZONE', 'TIMESTAMP_NS', 'TIMESTAMP_MS', 'TIMESTAMP_S'
  ] %}
  {%- if type in naive_types or (type is none and feedback.writes_naive_times()) %}
    {{ return(column ~ " at time zone '" ~ feedback.naive_time_zone(column) ~ "'") }}
  {%- endif %}
  {{ return('cast(' ~ column ~ ' as timestamptz)') }}
{% endmacro %}

{% macro snowflake__to_instant(column, type) %}
  {%- set is_naive = feedback.writes_naive_times() if type is none else 'NTZ' in type %}
  {%- if is_naive %}
    {{ return("convert_timezone('" ~ feedback.naive_time_zone(column) ~ "', 'UTC', " ~ column ~ ')') }}
  {%- endif %}
  {{ return("cast(convert_timezone('UTC', " ~ column ~ ') as timestamp_ntz)') }}
{% endmacro %}

{% macro bigquery__to_instant(column, type) %}
  {%- if type == 'DATETIME' %}
    {{ return('timestamp(' ~ column ~ ", '" ~ feedback.naive_time_zone(column) ~ "')") }}
  {%- endif %}
  {{ return('cast(' ~ column ~ ' as timestamp)') }}
{% endmacro %}
