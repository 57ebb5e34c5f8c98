/**
 * A lake: the tables of a snapshot in DuckLake, written by many processes at once. Each process appends its rows and
 * its states in one version of the lake and updates nothing. Tables hold versions; views with the names of a snapshot's
 * tables show the newest version of each key. Whatever reads a snapshot can read a lake opened with `openLake`. Only
 * `compactLake` and `forgetInLake` rewrite files, one process at a time.
 */
export { compactLake, type KeptVersions } from './compact'
export { diffVersions } from './diff'
export { forgetInLake } from './forget'
export { createLakeLoader } from './loader'
export { openLake, type PlaceOptions } from './open'
export { type LakeShare, postgresPrefix } from './place'
export { checkShare, endShare, listOpenShares, openLakeStates, readLakeStates } from './shares'
