/**
 * What the service holds. A review refers by number to the sentences it is made of (phrases.ts), so that a row is small and its
 * text, sentiments and scores are one and the same thing in every operation. The columns `original…` are set where a review came
 * from a snapshot.
 */
export const tableDefinitions = `
CREATE TABLE setting (name VARCHAR PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE source (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE region (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE brand (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE location (
  id BIGINT PRIMARY KEY, code VARCHAR NOT NULL UNIQUE, code_type VARCHAR, name VARCHAR, active BOOLEAN NOT NULL, avatar_id BIGINT, avatar_type VARCHAR,
  region_id BIGINT, brand_id BIGINT, details VARCHAR
);
CREATE TABLE provider (id BIGINT PRIMARY KEY, name VARCHAR, npi VARCHAR);
CREATE TABLE review (
  id BIGINT NOT NULL, survey_bar_code VARCHAR, source_id BIGINT, location_id BIGINT, provider_id BIGINT,
  mention TIMESTAMP, modified TIMESTAMP NOT NULL, rating DOUBLE, staff_rating DOUBLE, access_rating DOUBLE,
  first_phrase INTEGER, second_phrase INTEGER, third_phrase INTEGER, words INTEGER,
  liability INTEGER, task_id BIGINT, task_status VARCHAR, task_owner INTEGER,
  answer INTEGER, answered TIMESTAMP, visit_record_id VARCHAR, original VARCHAR, original_brand VARCHAR, original_comment VARCHAR
);
CREATE TABLE buried AS FROM review;
CREATE TABLE visit (id VARCHAR PRIMARY KEY, received TIMESTAMP NOT NULL, code VARCHAR, npi VARCHAR, record VARCHAR NOT NULL, reviewed BOOLEAN NOT NULL);
CREATE TABLE deleted (id BIGINT NOT NULL, source_id BIGINT, modified TIMESTAMP NOT NULL);
`

/** Made once the rows are there, which is faster; a page is fetched through the first one. */
export const indexDefinitions = `
CREATE UNIQUE INDEX review_id ON review (id);
`
