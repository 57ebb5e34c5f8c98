-- Every row of the table `reviews` with typed columns, including the versions that an append keeps, and tombstones.
{{ feedback.read_stream(
  'reviews',
  [
    ['review_id', 'bigint', ['id']],
    ['modified_time', 'time', ['modifiedTime']],
    ['mention_time', 'time', ['mentionTime']],
    ['rating', 'double', ['rating']],
    ['review_score', 'double', ['reviewScore']],
    ['location', 'json', ['location']],
    ['provider', 'json', ['provider']],
    ['source', 'json', ['source']],
    ['contents', 'json', ['contents']],
    ['task_details', 'json', ['taskDetails']],
    ['engagements', 'json', ['engagements']],
    ['visit_record_id', 'text', ['visitRecordId']],
    ['deleted_time', 'time', ['_ab_cdc_deleted_at', '_sdc_deleted_at']],
    ['extracted_time', 'time', ['_airbyte_extracted_at', '_sdc_extracted_at', '_sdc_batched_at']],
  ],
  required=true,
  keys=['id', 'modifiedTime'],
) }}
