{#
  Tests that compare a table with the service, or with what a run has sent: docs/proof.md. Arguments of macros are SQL
  text.
#}

{# 60 bits of the MD5 of a text, from the hexadecimal digit `place` on, as a number. #}
{% macro hash_of(text, place=1) %}{{ return(adapter.dispatch('hash_of', 'feedback')(text, place)) }}{% endmacro %}
{% macro duckdb__hash_of(text, place) %}
  {{ return("cast('0x' || substring(md5(" ~ text ~ "), " ~ place ~ ", 15) as bigint)") }}
{% endmacro %}
{% macro default__hash_of(text, place) %}
  {{ return("cast(cast('x' || substring(md5(" ~ text ~ "), " ~ place ~ ", 15) as bit(60)) as bigint)") }}
{% endmacro %}
{% macro snowflake__hash_of(text, place) %}
  {{ return("to_number(substring(md5(" ~ text ~ "), " ~ place ~ ", 15), 'XXXXXXXXXXXXXXX')") }}
{% endmacro %}
{% macro bigquery__hash_of(text, place) %}
  {{ return("cast(concat('0x', substring(to_hex(md5(" ~ text ~ ")), " ~ place ~ ", 15)) as int64)") }}
{% endmacro %}

{# Milliseconds since 1970 of one of the package's times, truncated. #}
{% macro millis_of(time) %}{{ return(adapter.dispatch('millis_of', 'feedback')(time)) }}{% endmacro %}
{% macro duckdb__millis_of(time) %}{{ return('epoch_ms(' ~ time ~ ')') }}{% endmacro %}
{% macro default__millis_of(time) %}
  {{ return("cast(round(extract(epoch from date_trunc('milliseconds', " ~ time ~ ")) * 1000) as bigint)") }}
{% endmacro %}
{% macro snowflake__millis_of(time) %}{{ return('date_part(epoch_millisecond, ' ~ time ~ ')') }}{% endmacro %}
{% macro bigquery__millis_of(time) %}{{ return('unix_millis(' ~ time ~ ')') }}{% endmacro %}

{# A whole number of up to 38 digits, and a sum of them. #}
{% macro as_whole(expression) %}
  {{ return('cast(' ~ expression ~ ' as ' ~ ('bignumeric' if target.type == 'bigquery' else 'decimal(38, 0)') ~ ')') }}
{% endmacro %}
{% macro sum_of(expression) %}{{ return('coalesce(sum(' ~ feedback.as_whole(expression) ~ '), 0)') }}{% endmacro %}

{#
  The streams whose rows a test counts: name, attributes of the key with their types, how many of them the hash has,
  and the version.
#}
{% macro audited_streams() %}
  {{ return([
    ['deleted_reviews', [['id', 'bigint']], 1, 'modifiedTime'],
    ['reviews', [['id', 'bigint']], 1, 'modifiedTime'],
    ['locations', [['id', 'bigint']], 1, 'reviewModifiedTime'],
    ['providers', [['id', 'bigint']], 1, 'reviewModifiedTime'],
    ['sources', [['id', 'bigint']], 1, 'reviewModifiedTime'],
    ['categories', [['id', 'text']], 1, 'reviewModifiedTime'],
    ['questions', [['id', 'text']], 1, 'reviewModifiedTime'],
    ['review_contents', [['reviewId', 'bigint'], ['id', 'bigint']], 1, 'reviewModifiedTime'],
    ['review_sentiments', [
      ['reviewId', 'bigint'], ['contentId', 'bigint'], ['id', 'bigint'],
    ], 1, 'reviewModifiedTime'],
    ['review_liabilities', [
      ['reviewId', 'bigint'], ['contentId', 'bigint'], ['liabilityId', 'bigint'],
    ], 1, 'reviewModifiedTime'],
    ['review_tasks', [['reviewId', 'bigint']], 1, 'reviewModifiedTime'],
    ['review_engagements', [['reviewId', 'bigint'], ['position', 'bigint']], 1, 'reviewModifiedTime'],
    ['comments', [['entityType', 'text'], ['entityId', 'text'], ['id', 'text']], 3, 'mentionTime'],
    ['transparency_reviews', [['entityType', 'text'], ['entityId', 'text'], ['documentId', 'text']], 3, 'mentionTime'],
    ['entity_ratings', [['entityType', 'text'], ['entityId', 'text']], 2, none],
    ['managed_locations', [['code', 'text'], ['codeType', 'text']], 2, none],
  ]) }}
{% endmacro %}

{#
  For the table `sync_audit`: everything that the last run of each stream sent has arrived. Only rows extracted while
  that run sent them count, and of these the newest version. Rows that a run without a record (a failed one, or one
  in progress) has replaced since do not count as missing. If there are more rows than the run sent records, some
  arrived twice, whether the loader appends or merges.
  `streams`: the names of the streams to check; by default all.
#}
{% test sync_is_complete(model, streams=none) %}
{#- PyAirbyte treats the digits of the digest as a number and rounds them to a double. #}
{%- set tolerance = 'found.found_digest / 1000000000000000' if feedback.loader() == 'pyairbyte' else '0' %}
{%- set looked_at = [] %}
{%- for stream in feedback.audited_streams() if streams is none or stream[0] in streams %}
  {%- do looked_at.append(stream) %}
{%- endfor %}
with audits as (
  select stream, started_time, ended_time, sent_records, expected_rows, expected_digest, digest_columns
  from (
    select sent.*, row_number() over (partition by sent.stream order by sent.ended_time desc) as run_rank
    from (
      {{ feedback.read_stream('sync_audit', [
        ['stream', 'text', ['stream']],
        ['started_time', 'time', ['startedAt']],
        ['ended_time', 'time', ['endedAt']],
        ['sent_records', 'bigint', ['records']],
        ['expected_rows', 'bigint', ['rows']],
        ['expected_digest', 'text', ['digest']],
        ['digest_columns', 'text', ['digestColumns']],
      ]) | indent(6) }}
    ) as sent
  ) as ranked
  where run_rank = 1
),
{%- for name, keys, hashed, version in looked_at %}
{%- set columns = [] %}
{%- set texts = [] %}
{%- for attribute, type in keys %}
  {%- do columns.append(['key_' ~ loop.index, type, [attribute]]) %}
  {%- do texts.append(feedback.as_text('loaded.key_' ~ loop.index)) %}
{%- endfor %}
{%- if version is not none %}{% do columns.append(['version_time', 'time', [version]]) %}{% endif %}
{{ name }}_rows as (
  select
    {{ texts[:hashed] | join(" || ':' || ") }}
    {%- if version is not none %} || ':' || {{ feedback.as_text(feedback.millis_of('loaded.version_time')) }}{% endif %}
      as hashed,
    {{ texts[:hashed] | join(" || ':' || ") }} as parent,
    {{ texts | join(" || ':' || ") }} as row_key,
    {{ feedback.millis_of('loaded.version_time') if version is not none else '0' }} as version,
    loaded.marked_time,
    loaded.extracted_time > audits.ended_time as is_later
  from (
    {{ feedback.read_stream(name, columns + [
      ['marked_time', 'time', ['_ab_cdc_deleted_at', '_sdc_deleted_at']],
      ['extracted_time', 'time', ['_airbyte_extracted_at', '_sdc_extracted_at']],
    ]) | indent(4) }}
  ) as loaded
  inner join audits on audits.stream = '{{ name }}' and loaded.extracted_time >= audits.started_time
),
{{ name }}_newest as (
  select parent, max(version) as version from {{ name }}_rows where not is_later group by parent
),
{{ name }}_kept as (
  select distinct {{ name }}_rows.row_key, {{ name }}_rows.hashed
  from {{ name }}_rows
  inner join {{ name }}_newest
    on {{ name }}_newest.parent = {{ name }}_rows.parent
    and {{ name }}_newest.version = {{ name }}_rows.version
  where not {{ name }}_rows.is_later and {{ name }}_rows.marked_time is null
),
{%- endfor %}
found as (
  {%- for name, keys, hashed, version in looked_at %}
  {%- set columns = (keys | map(attribute=0) | list)[:hashed] + ([version] if version is not none else []) %}
  select
    '{{ name }}' as stream,
    '{{ columns | join(',') }}' as digest_columns,
    (select count(*) from {{ name }}_kept) as found_rows,
    (select {{ feedback.sum_of(feedback.hash_of('hashed')) }} from {{ name }}_kept) as found_digest,
    (select count(*) from {{ name }}_rows where not is_later) as all_rows,
    (select count(distinct row_key) from {{ name }}_rows where is_later) as later_rows
  {%- if not loop.last %}
  union all
  {%- endif %}
  {%- endfor %}
)

select
  audits.stream,
  audits.started_time,
  audits.ended_time,
  audits.expected_rows,
  found.found_rows,
  audits.sent_records,
  found.all_rows
from audits
inner join found on found.stream = audits.stream and found.digest_columns = audits.digest_columns
where found.all_rows > audits.sent_records
  or audits.expected_digest is not null
  and (
    audits.expected_rows <> found.found_rows
    or abs({{ feedback.as_whole('audits.expected_digest') }} - found.found_digest) > {{ tolerance }}
  )
  and not (found.found_rows < audits.expected_rows and audits.expected_rows - found.found_rows <= found.later_rows)
{% endtest %}

{# A word in a line of the seed as a number. Other kinds of lines have other words there. #}
{% macro word_of(kind, place, whole=false) %}
  {%- set word = 'part_' ~ place %}
  {%- set number = feedback.as_whole(word) if whole else feedback.as_bigint(word) %}
  {{- return("case when part_1 = '" ~ kind ~ "' then " ~ number ~ " end") }}
{% endmacro %}

{# A column of a relation by the name of its attribute, as a value of a type. #}
{% macro column_of(relation, attribute, type) %}
  {%- if not execute %}{{ return('null') }}{% endif %}
  {%- set column = feedback.stream_columns(relation, [attribute]).get(feedback.fold_name(attribute)) %}
  {%- if column is none %}
    {% do exceptions.raise_compiler_error(
      relation ~ ' has no column ' ~ attribute ~ '. Set id_column and version_column.'
    ) %}
  {%- endif %}
  {{ return(feedback.cast_column(column.name, column.type, type)) }}
{% endmacro %}

{#
  The table has exactly the reviews that `feedback audit --seed` read from the service, in the same versions. Each row
  of the result is a bucket of ids that differs. `expected`: the seed. `rows`: one: a row for each review; newest:
  every version is kept and the newest counts; parts: several rows of the newest version. `deleted_column`: marks
  deleted rows. `deletions`: the relation of deleted_reviews, if those rows are still in the table.
#}
{% test feedback_equals_service(
  model,
  expected,
  id_column='id',
  version_column='modifiedTime',
  rows='one',
  deleted_column=none,
  deletions=none
) %}
{%- if rows not in ['one', 'newest', 'parts'] %}
  {% do exceptions.raise_compiler_error(
    "feedback_equals_service: rows is '" ~ rows ~ "'. Set it to one, newest or parts."
  ) %}
{%- endif %}
with lines as (
  select
    {%- for part in range(1, 8) %}
    {{ dbt.split_part('expected', "' '", part) }} as part_{{ part }}{{ ',' if not loop.last }}
    {%- endfor %}
  from {{ expected }}
),
scope as (
  select
    {{ feedback.word_of('scope', 2) }} as start_millis,
    {{ feedback.word_of('scope', 3) }} as cutoff_millis,
    {{ feedback.word_of('scope', 4) }} as bucket_count
  from lines
  where part_1 = 'scope'
),
served as (
  select
    {{ feedback.word_of('bucket', 2) }} as bucket,
    {{ feedback.word_of('bucket', 3) }} as ids,
    {{ feedback.word_of('bucket', 4) }} as row_count,
    {{ feedback.word_of('bucket', 5, true) }} as id_digest,
    {{ feedback.word_of('bucket', 6, true) }} as version_digest,
    {{ feedback.word_of('bucket', 7, true) }} as row_digest
  from lines
  where part_1 = 'bucket'
),
loaded as (
  select
    coalesce({{ feedback.as_text(feedback.column_of(model, id_column, 'bigint')) }}, '') as id,
    coalesce({{ feedback.millis_of(feedback.column_of(model, version_column, 'time')) }}, -1) as version,
    {%- if deleted_column is none %}
    false as is_marked
    {%- else %}
    {{ feedback.column_of(model, deleted_column, 'time') }} is not null as is_marked
    {%- endif %}
  from {{ model }} as given
),
deleted as (
  {%- if deletions is not none %}
  select
    {{ feedback.as_text(feedback.column_of(deletions, 'id', 'bigint')) }} as id,
    {{ feedback.millis_of(feedback.column_of(deletions, 'modifiedTime', 'time')) }} as version
  from {{ deletions }} as given
  union all
  {%- endif %}
  select id, version from loaded where is_marked
),
last_deleted as (
  select id, max(version) as version from deleted group by id
),
compared as (
  select loaded.id, loaded.version
  from loaded
  cross join scope
  left join last_deleted on last_deleted.id = loaded.id and last_deleted.version > loaded.version
  left join (select distinct part_2 as id from lines where part_1 = 'changed') as changed on changed.id = loaded.id
  where not loaded.is_marked
    and last_deleted.id is null
    and changed.id is null
    and (loaded.version between scope.start_millis and scope.cutoff_millis or loaded.version = -1)
),
newest as (
  select id, max(version) as version, count(*) as row_count from compared group by id
),
reviews as (
  {%- if rows == 'parts' %}
  select newest.id, newest.version, count(*) as row_count
  from newest
  inner join compared on compared.id = newest.id and compared.version = newest.version
  group by newest.id, newest.version
  {%- else %}
  select id, version, {{ '1' if rows == 'newest' else 'row_count' }} as row_count from newest
  {%- endif %}
),
hashed as (
  select
    mod({{ feedback.hash_of('reviews.id') }}, scope.bucket_count) as bucket,
    {{ feedback.hash_of('reviews.id', 18) }} as id_hash,
    {{ feedback.hash_of("reviews.id || ':' || " ~ feedback.as_text('reviews.version')) }} as version_hash,
    reviews.row_count
  from reviews
  cross join scope
),
held as (
  select
    bucket,
    count(*) as ids,
    sum(row_count) as row_count,
    {{ feedback.sum_of('id_hash') }} as id_digest,
    {{ feedback.sum_of('version_hash') }} as version_digest,
    sum({{ feedback.as_whole('version_hash') }} * row_count) as row_digest
  from hashed
  group by bucket
),
both_sides as (
  select
    coalesce(served.bucket, held.bucket) as bucket,
    coalesce(served.ids, 0) as expected_reviews, coalesce(held.ids, 0) as found_reviews,
    coalesce(served.row_count, 0) as expected_rows, coalesce(held.row_count, 0) as found_rows,
    coalesce(served.id_digest, 0) = coalesce(held.id_digest, 0) as has_ids,
    coalesce(served.version_digest, 0) = coalesce(held.version_digest, 0) as has_versions,
    coalesce(served.row_digest, 0) = coalesce(held.row_digest, 0) as has_rows
  from served
  full outer join held on held.bucket = served.bucket
)

select
  bucket,
  case
    when found_reviews < expected_reviews then 'missing'
    when found_reviews > expected_reviews then 'extra'
    when not has_ids then 'missing and extra'
    when not has_versions then 'stale'
    when found_rows < expected_rows then 'rows missing'
    when found_rows > expected_rows then 'doubled'
    else 'rows missing and doubled'
  end as difference,
  expected_reviews, found_reviews, expected_rows, found_rows
from both_sides
where expected_reviews <> found_reviews
  or expected_rows <> found_rows
  or not has_ids
  or not has_versions
  or not has_rows
union all
select -1, 'the seed is empty', 0, 0, 0, 0
from (select count(*) as scopes from scope) as counted
where scopes <> 1
{% endtest %}
