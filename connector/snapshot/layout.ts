/** Raised when an older build could no longer read what this one writes. */
export const format = 1

/**
 * The tables of our own. `_streams`: how each stream was declared, and the generation it stands at. `_loads`: one row for
 * each stream and run; `records` counts what came, `source_records` what the source says it sent, `rows` the table after it.
 */
export const layout = `
  CREATE TABLE _meta (name VARCHAR, value VARCHAR);
  INSERT INTO _meta VALUES ('format', '${format}');
  CREATE TABLE _streams (
    stream VARCHAR, schema JSON, primary_key VARCHAR[], cursor VARCHAR, generation BIGINT, refreshing BOOLEAN);
  CREATE TABLE _state (stream VARCHAR, state JSON, saved_at TIMESTAMPTZ);
  CREATE TABLE _loads (
    load BIGINT, run BIGINT, stream VARCHAR, sync_mode VARCHAR, started TIMESTAMPTZ, ended TIMESTAMPTZ, seconds DOUBLE,
    records BIGINT, source_records BIGINT, rows BIGINT, cursor_from VARCHAR, cursor_to VARCHAR, generation BIGINT,
    status VARCHAR)`

/** Names a stream cannot have. */
export const reserved: ReadonlySet<string> = new Set(['_meta', '_streams', '_state', '_loads'])
