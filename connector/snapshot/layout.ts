/** Raised when an older build could no longer read what this one writes. */
export const snapshotFormat = 1

/**
 * The tables of our own. `_streams`: how each stream was declared, the generation it stands at, the rows it has. `_loads`: one
 * row for each stream and run; `records` counts what came, `source_records` what the source says it sent, `rows` the table
 * after it, cursor_from and cursor_to the least and greatest cursor that came.
 */
export const metadataTablesSql = `
  CREATE TABLE _meta (name VARCHAR, value VARCHAR);
  INSERT INTO _meta VALUES ('format', '${snapshotFormat}');
  CREATE TABLE _streams (
    stream VARCHAR, schema JSON, primary_key VARCHAR[], cursor VARCHAR, generation BIGINT, refreshing BOOLEAN, rows BIGINT);
  CREATE TABLE _state (stream VARCHAR, state JSON, saved_at TIMESTAMPTZ);
  CREATE TABLE _loads (
    load BIGINT, run BIGINT, stream VARCHAR, sync_mode VARCHAR, started TIMESTAMPTZ, ended TIMESTAMPTZ, seconds DOUBLE,
    records BIGINT, source_records BIGINT, rows BIGINT, cursor_from VARCHAR, cursor_to VARCHAR, generation BIGINT,
    status VARCHAR)`
