{# The variable feedback_loader, checked. #}
{% macro loader() %}
  {%- set name = var('feedback_loader') %}
  {%- if name not in ['airbyte', 'pyairbyte', 'meltano', 'snapshot'] %}
    {% do exceptions.raise_compiler_error(
      "feedback_loader is '" ~ name ~ "'. Set it to airbyte, pyairbyte, meltano or snapshot."
    ) %}
  {%- endif %}
  {{ return(name) }}
{% endmacro %}

{# Letters and digits in lower case: loaders write modifiedTime, modifiedtime, MODIFIEDTIME or modified_time. #}
{% macro fold_name(name) %}{{ return(modules.re.sub('[^a-z0-9]', '', name | lower)) }}{% endmacro %}

{# True if the warehouse may be queried; not with --no-introspect. #}
{% macro may_look() %}{{ return(flags.INTROSPECT) }}{% endmacro %}

{#
  The relation of a stream; none if the table does not exist. If the warehouse was not queried, it exists unless
  feedback_streams leaves it out.
#}
{% macro stream_relation(stream) %}
  {%- set relation = source('feedback', stream) %}
  {%- set listed = var('feedback_streams') %}
  {%- if listed and stream not in listed %}{{ return(none) }}{% endif %}
  {%- if stream.startswith('_') and feedback.loader() != 'snapshot' %}{{ return(none) }}{% endif %}
  {%- if not execute or not feedback.may_look() %}{{ return(relation) }}{% endif %}
  {{ return(load_relation(relation)) }}
{% endmacro %}

{# The columns of a stream's table: folded name to quoted name and type, the type none without a look. #}
{% macro stream_columns(relation, attributes) %}
  {%- set found = {} %}
  {%- if feedback.may_look() %}
    {%- for column in adapter.get_columns_in_relation(relation) %}
      {%- do found.update({
        feedback.fold_name(column.name): {'name': adapter.quote(column.name), 'type': column.data_type | upper}
      }) %}
    {%- endfor %}
  {%- else %}
    {%- for attribute in attributes if not attribute.endswith('deleted_at') %}
      {%- set written = attribute | lower if var('feedback_loader', 'airbyte') == 'pyairbyte' else attribute %}
      {%- set kept = attribute | upper if target.type == 'snowflake' else written %}
      {%- do found.update({feedback.fold_name(attribute): {'name': adapter.quote(kept), 'type': none}}) %}
    {%- endfor %}
  {%- endif %}
  {{ return(found) }}
{% endmacro %}

{#
  The rows of a stream with typed columns. `columns`: a list of [name, type, attributes]; the first attribute that the
  table has is used, and a column is null if it has none of them. A stream whose table is absent has no rows, unless it
  is `required`.
#}
{% macro read_stream(stream, columns, required=false, keys=[]) %}
{%- set relation = feedback.stream_relation(stream) %}
{%- if not execute %}
select 1 as parsed from {{ source('feedback', stream) }}
{%- elif relation is none %}
  {%- if required %}
    {% do exceptions.raise_compiler_error(
      'There is no table ' ~ source('feedback', stream) ~ '. Set feedback_database, feedback_schema and '
      ~ 'feedback_table_prefix to where ' ~ feedback.loader() ~ ' writes.'
    ) %}
  {%- endif %}
select
  {%- for name, type, attributes in columns %}
  {{ feedback.null_of(type) }} as {{ name }}{{ ',' if not loop.last }}
  {%- endfor %}
from (select 1 as nothing) as no_table
where 1 = 0
{%- else %}
  {%- set attributes_of_stream = columns | map(attribute=2) | sum(start=[]) %}
  {%- set found = feedback.stream_columns(relation, attributes_of_stream) %}
  {%- for attribute in keys if feedback.fold_name(attribute) not in found %}
    {%- set names = found.values() | map(attribute='name') | join(', ') %}
    {% do exceptions.raise_compiler_error(
      source('feedback', stream) ~ ' has no column ' ~ attribute ~ '. It has ' ~ names ~ '.'
    ) %}
  {%- endfor %}
select
  {%- for name, type, attributes in columns %}
    {%- set matches = attributes | map('lower') | list %}
    {%- set column = namespace(found=none) %}
    {%- for attribute in attributes if column.found is none %}
      {%- set column.found = found.get(feedback.fold_name(attribute)) %}
    {%- endfor %}
    {%- if column.found is none %}
  {{ feedback.null_of(type) }} as {{ name }}{{ ',' if not loop.last }}
    {%- else %}
  {{ feedback.cast_column(column.found.name, column.found.type, type) }} as {{ name }}{{ ',' if not loop.last }}
    {%- endif %}
  {%- endfor %}
from {{ relation }}
{%- endif %}
{%- endmacro %}

{#
  True if `reviews` has this JSON column, from which the parts of a review are read. Otherwise they come from their own
  tables.
#}
{% macro parts_of_reviews(attribute) %}
  {%- set choice = var('feedback_children') %}
  {%- if choice not in ['auto', 'reviews', 'tables'] %}
    {% do exceptions.raise_compiler_error(
      "feedback_children is '" ~ choice ~ "'. Set it to auto, reviews or tables."
    ) %}
  {%- endif %}
  {%- if choice != 'auto' %}{{ return(choice == 'reviews') }}{% endif %}
  {%- if not execute or not feedback.may_look() %}{{ return(true) }}{% endif %}
  {%- set relation = feedback.stream_relation('reviews') %}
  {{ return(relation is not none and feedback.fold_name(attribute) in feedback.stream_columns(relation, [])) }}
{% endmacro %}

{#
  The rows of a child table that belong to the current version of their review, one per key. A loader keeps the parts
  that a review no longer has: they carry the modification time of an older version.
#}
{% macro current_parts(stream, keys, columns) %}
select
  review_id,
  {%- for name, type, attributes in columns if name not in ['review_id'] %}
  {{ name }}{{ ',' if not loop.last }}
  {%- endfor %}
from (
  select
    parts.*,
    row_number() over (
      partition by {% for key in keys %}parts.{{ key }}{{ ', ' if not loop.last }}{% endfor %}
      order by parts.extracted_time desc
    ) as part_rank
  from (
    {{ feedback.read_stream(stream, [
      ['review_id', 'bigint', ['reviewId']],
      ['review_modified_time', 'time', ['reviewModifiedTime']],
      ['marked_time', 'time', ['_ab_cdc_deleted_at', '_sdc_deleted_at']],
      ['extracted_time', 'time', ['_airbyte_extracted_at', '_sdc_extracted_at', '_sdc_batched_at']],
    ] + columns) | indent(4) }}
  ) as parts
  inner join {{ ref('stg_feedback__reviews') }} as reviews
    on reviews.review_id = parts.review_id and reviews.modified_time = parts.review_modified_time
  where parts.marked_time is null
) as ranked
where part_rank = 1
{%- endmacro %}
