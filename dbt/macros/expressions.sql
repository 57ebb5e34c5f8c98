{# Expressions used in the marts. Arguments are SQL text. #}

{#
  The instant up to which ages are counted: the variable as_of (a time with its zone, such as 2026-11-01T00:00:00Z), or
  else now.
#}
{% macro as_of() %}{{ return(adapter.dispatch('as_of', 'feedback')(var('as_of'))) }}{% endmacro %}
{% macro default__as_of(time) %}
  {{ return("cast('" ~ time ~ "' as timestamptz)" if time else 'current_timestamp') }}
{% endmacro %}
{% macro snowflake__as_of(time) %}
  {%- set instant = "to_timestamp_tz('" ~ time ~ "')" if time else 'current_timestamp()' %}
  {{ return("cast(convert_timezone('UTC', " ~ instant ~ ') as timestamp_ntz)') }}
{% endmacro %}
{% macro bigquery__as_of(time) %}
  {{ return("timestamp '" ~ time ~ "'" if time else 'current_timestamp()') }}
{% endmacro %}

{# A constant instant, given with its zone. #}
{% macro instant(time) %}{{ return(adapter.dispatch('as_of', 'feedback')(time)) }}{% endmacro %}

{# The day of a time, or the first day of its month, in the variable time_zone. #}
{% macro local_day(time) %}{{ return(adapter.dispatch('local_day', 'feedback')(time, var('time_zone'))) }}{% endmacro %}
{% macro default__local_day(time, zone) %}
  {{ return('cast(' ~ time ~ " at time zone '" ~ zone ~ "' as date)") }}
{% endmacro %}
{% macro snowflake__local_day(time, zone) %}
  {{ return("cast(convert_timezone('UTC', '" ~ zone ~ "', " ~ time ~ ') as date)') }}
{% endmacro %}
{% macro bigquery__local_day(time, zone) %}{{ return('date(' ~ time ~ ", '" ~ zone ~ "')") }}{% endmacro %}

{% macro local_month(time) %}
  {{ return(adapter.dispatch('first_of_month', 'feedback')(feedback.local_day(time))) }}
{% endmacro %}
{% macro default__first_of_month(day) %}{{ return("cast(date_trunc('month', " ~ day ~ ') as date)') }}{% endmacro %}
{% macro bigquery__first_of_month(day) %}{{ return('date_trunc(' ~ day ~ ', month)') }}{% endmacro %}

{# The first day of the month `count` months later. #}
{% macro add_months(month, count=1) %}
  {{ return(adapter.dispatch('add_months', 'feedback')(month, count)) }}
{% endmacro %}
{% macro default__add_months(month, count) %}
  {{ return('cast(' ~ month ~ " + interval '1 month' * (" ~ count ~ ') as date)') }}
{% endmacro %}
{% macro snowflake__add_months(month, count) %}
  {{ return('cast(dateadd(month, ' ~ count ~ ', ' ~ month ~ ') as date)') }}
{% endmacro %}
{% macro bigquery__add_months(month, count) %}
  {{ return('date_add(' ~ month ~ ', interval (' ~ count ~ ') month)') }}
{% endmacro %}

{# Seconds from one time to another, with their milliseconds. #}
{% macro seconds_between(start, end) %}
  {{ return(adapter.dispatch('seconds_between', 'feedback')(start, end)) }}
{% endmacro %}
{% macro duckdb__seconds_between(start, end) %}
  {{ return('((epoch_ms(' ~ end ~ ') - epoch_ms(' ~ start ~ ')) / 1000.0)') }}
{% endmacro %}
{% macro default__seconds_between(start, end) %}
  {{ return('(extract(epoch from ' ~ end ~ ') - extract(epoch from ' ~ start ~ '))') }}
{% endmacro %}
{% macro snowflake__seconds_between(start, end) %}
  {{ return('(timestampdiff(millisecond, ' ~ start ~ ', ' ~ end ~ ') / 1000)') }}
{% endmacro %}
{% macro bigquery__seconds_between(start, end) %}
  {{ return('(timestamp_diff(' ~ end ~ ', ' ~ start ~ ', millisecond) / 1000)') }}
{% endmacro %}

{% macro hours_between(start, end) %}{{ return('(' ~ feedback.seconds_between(start, end) ~ ' / 3600)') }}{% endmacro %}
{# Whole days of 24 hours. #}
{% macro days_between(start, end) %}
  {{ return(feedback.as_bigint('floor(' ~ feedback.seconds_between(start, end) ~ ' / 86400)')) }}
{% endmacro %}

{# The median of a group, ignoring nulls. For an even number of values, the mean of the middle two. #}
{% macro median(expression) %}{{ return(adapter.dispatch('median', 'feedback')(expression)) }}{% endmacro %}
{% macro default__median(expression) %}
  {{ return('percentile_cont(0.5) within group (order by ' ~ expression ~ ')') }}
{% endmacro %}
{% macro snowflake__median(expression) %}
  {{ return('percentile_cont(0.5) within group (order by ' ~ feedback.as_double(expression) ~ ')') }}
{% endmacro %}
{% macro duckdb__median(expression) %}{{ return('quantile_cont(' ~ expression ~ ', 0.5)') }}{% endmacro %}
{# BigQuery has percentile_cont only for windows. #}
{% macro bigquery__median(expression) %}
  {%- set sorted = 'array_agg(' ~ expression ~ ' ignore nulls order by ' ~ expression ~ ')' %}
  {%- set half = '(count(' ~ expression ~ ') - 1) / 2' %}
  {%- set lower = sorted ~ '[safe_offset(cast(floor(' ~ half ~ ') as int64))]' %}
  {%- set upper = sorted ~ '[safe_offset(cast(ceil(' ~ half ~ ') as int64))]' %}
  {{ return('((' ~ lower ~ ' + ' ~ upper ~ ') / 2)') }}
{% endmacro %}

{#
  A number rounded to the given digits, halves away from zero. It is first truncated to nine digits: warehouses add
  doubles in different orders, and the last bit of a sum must not decide.
#}
{% macro round_to(expression, digits) %}
  {%- set exact = adapter.dispatch('exact', 'feedback')(expression) %}
  {{ return('cast(round(' ~ exact ~ ', ' ~ digits ~ ') as ' ~ feedback.type_of('double') ~ ')') }}
{% endmacro %}
{% macro default__exact(expression) %}{{ return('cast(' ~ expression ~ ' as decimal(28, 9))') }}{% endmacro %}
{% macro bigquery__exact(expression) %}{{ return('cast(' ~ expression ~ ' as numeric)') }}{% endmacro %}

{% macro as_text(expression) %}
  {{ return('cast(' ~ expression ~ ' as ' ~ feedback.type_of('text') ~ ')') }}
{% endmacro %}
{% macro as_double(expression) %}
  {{ return('cast(' ~ expression ~ ' as ' ~ feedback.type_of('double') ~ ')') }}
{% endmacro %}
{% macro as_bigint(expression) %}
  {{ return('cast(' ~ expression ~ ' as ' ~ feedback.type_of('bigint') ~ ')') }}
{% endmacro %}

{#
  A trimmed text as a number with a decimal point and up to 15 digits on either side of it; null if it is not one.
#}
{% macro number_of(text) %}
  {%- set is_number = feedback.matches(text, '^-?[0-9]{1,15}([.][0-9]{1,15})?$') %}
  {{- return('case when ' ~ is_number ~ ' then ' ~ feedback.safe_cast_text(text, 'double') ~ ' end') }}
{% endmacro %}

{# A text as a date, in ISO 8601, alone or before a time, unconverted; null if there is no such day. #}
{% macro date_of(text) %}
  {%- set time = '[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})?' %}
  {%- set pattern = '^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(' ~ time ~ ')?$' %}
  {%- set day = adapter.dispatch('day_of', 'feedback')(text) %}
  {{- return('case when ' ~ feedback.matches(text, pattern) ~ ' then ' ~ day ~ ' end') }}
{% endmacro %}
{# PostgreSQL has no cast that fails quietly, so a day that its month lacks is detected first. #}
{% macro default__day_of(text) %}
  {%- set month = 'cast(substring(' ~ text ~ ", 1, 7) || '-01' as date)" %}
  {%- set last = 'extract(day from ' ~ month ~ " + interval '1 month' - interval '1 day')" %}
  {%- set exists = 'cast(substring(' ~ text ~ ', 9, 2) as integer) <= ' ~ last %}
  {{- return('case when ' ~ exists ~ ' then cast(substring(' ~ text ~ ', 1, 10) as date) end') }}
{% endmacro %}
{% macro duckdb__day_of(text) %}{{ return('try_cast(substring(' ~ text ~ ', 1, 10) as date)') }}{% endmacro %}
{% macro snowflake__day_of(text) %}
  {{ return('try_to_date(substring(' ~ text ~ ", 1, 10), 'YYYY-MM-DD')") }}
{% endmacro %}
{% macro bigquery__day_of(text) %}{{ return('safe_cast(substring(' ~ text ~ ', 1, 10) as date)') }}{% endmacro %}

{# What reviewers wrote, if the variable feedback_with_text is set. #}
{% macro kept_text(expression) %}
  {{ return(expression if var('feedback_with_text') else feedback.null_of('text')) }}
{% endmacro %}

{# One number as a share of another, from 0 to 1 with two digits; null if the other is 0. #}
{% macro share(part, whole) %}
  {{ return(feedback.round_to(feedback.as_double(part) ~ ' / nullif(' ~ whole ~ ', 0)', 2)) }}
{% endmacro %}
