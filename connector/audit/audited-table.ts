import { hash } from 'node:crypto'

/** The SQL dialects in which an audit is printed. */
export const dialectNames = ['duckdb', 'postgres', 'snowflake', 'bigquery', 'redshift', 'databricks'] as const
export type DialectName = (typeof dialectNames)[number]

/** How a column stores an id: as a number or as text digits. */
export const idTypes = ['number', 'text'] as const
export type IdType = (typeof idTypes)[number]

/** How a column stores a time. `timestamp` has no zone, `text` is ISO 8601, `millis` counts from 1970. */
export const timeTypes = ['timestamptz', 'timestamp', 'text', 'millis'] as const
export type TimeType = (typeof timeTypes)[number]

/** What differs between the dialects. Arguments and results are SQL. */
export type Dialect = {
  readonly text: string
  readonly integer: string
  /** Whole numbers of 38 digits. */
  readonly decimal: string
  /** The MD5 of a text, as 32 hexadecimal digits. */
  readonly md5: (text: string) => string
  /** The number represented by 15 hexadecimal digits. */
  readonly hexNumber: (digits: string) => string
  /** Milliseconds since 1970, truncated. */
  readonly millis: (column: string, type: Exclude<TimeType, 'millis'>) => string
  /** The month in UTC of milliseconds since 1970, such as `2026-01`. */
  readonly month: (millis: string) => string
  /** A column name, quoted if the warehouse keeps its case. */
  readonly quote: (name: string) => string
  /** The maximum size of a statement, in bytes. */
  readonly maxBytes: number
}

const standard = {
  text: 'VARCHAR',
  integer: 'BIGINT',
  decimal: 'DECIMAL(38, 0)',
  md5: (text: string) => `MD5(${text})`,
  maxBytes: 16_000_000,
} as const

const quoteDouble = (name: string): string => `"${name.replaceAll('"', '""')}"`
const quoteBacktick = (name: string): string => `\`${name.replaceAll('`', '')}\``

/** Warehouses that change the case of names find them only without quotes. */
const leaveUnquoted = (name: string): string => name

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  duckdb: {
    ...standard,
    month: (millis) => `STRFTIME(MAKE_TIMESTAMP(${millis} * 1000), '%Y-%m')`,
    hexNumber: (digits) => `CAST('0x' || ${digits} AS BIGINT)`,
    millis: (column, type) => (type === 'text' ? `EPOCH_MS(CAST(${column} AS TIMESTAMPTZ))` : `EPOCH_MS(${column})`),
    quote: quoteDouble,
  },
  postgres: {
    ...standard,
    month: (millis) => `TO_CHAR(TO_TIMESTAMP(${millis} / 1000) AT TIME ZONE 'UTC', 'YYYY-MM')`,
    hexNumber: (digits) => `CAST(CAST('x' || ${digits} AS BIT(60)) AS BIGINT)`,
    millis: (column, type) =>
      `CAST(ROUND(EXTRACT(EPOCH FROM DATE_TRUNC('milliseconds', ` +
      `${type === 'text' ? `CAST(${column} AS TIMESTAMPTZ)` : column})) * 1000) AS BIGINT)`,
    quote: quoteDouble,
  },
  snowflake: {
    ...standard,
    month: (millis) => `TO_CHAR(TO_TIMESTAMP_NTZ(${millis}, 3), 'YYYY-MM')`,
    hexNumber: (digits) => `TO_NUMBER(${digits}, 'XXXXXXXXXXXXXXX')`,
    millis: (column, type) =>
      `DATE_PART(EPOCH_MILLISECOND, ${type === 'text' ? `TO_TIMESTAMP_TZ(${column})` : column})`,
    quote: leaveUnquoted,
    maxBytes: 1_000_000,
  },
  bigquery: {
    ...standard,
    month: (millis) => `FORMAT_TIMESTAMP('%Y-%m', TIMESTAMP_MILLIS(${millis}), 'UTC')`,
    text: 'STRING',
    integer: 'INT64',
    decimal: 'BIGNUMERIC',
    md5: (text) => `TO_HEX(MD5(${text}))`,
    hexNumber: (digits) => `CAST(CONCAT('0x', ${digits}) AS INT64)`,
    // A cast would use the project's default time zone.
    millis: (column, type) =>
      `UNIX_MILLIS(${type === 'timestamp' ? `TIMESTAMP(${column}, 'UTC')` : `CAST(${column} AS TIMESTAMP)`})`,
    quote: quoteBacktick,
    maxBytes: 1_000_000,
  },
  redshift: {
    ...standard,
    // A plain VARCHAR has only 256 bytes there.
    text: 'VARCHAR(65535)',
    month: (millis) => `TO_CHAR(TIMESTAMP 'epoch' + ${millis} / 1000 * INTERVAL '1 second', 'YYYY-MM')`,
    hexNumber: (digits) => `STRTOL(${digits}, 16)`,
    millis: (column, type) =>
      `DATEDIFF(millisecond, CAST('1970-01-01' AS TIMESTAMP), ${
        type === 'timestamp'
          ? column
          : `(${type === 'text' ? `CAST(${column} AS TIMESTAMPTZ)` : column} AT TIME ZONE 'UTC')`
      })`,
    quote: leaveUnquoted,
  },
  databricks: {
    ...standard,
    month: (millis) =>
      `SUBSTRING(CAST(DATE_ADD(DATE'1970-01-01', CAST(${millis} DIV 86400000 AS INT)) AS STRING), 1, 7)`,
    text: 'STRING',
    hexNumber: (digits) => `CAST(CONV(${digits}, 16, 10) AS BIGINT)`,
    millis: (column, type) =>
      type === 'timestamp'
        ? `TIMESTAMPDIFF(MILLISECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', ${column})`
        : `UNIX_MILLIS(CAST(${column} AS TIMESTAMP))`,
    quote: quoteBacktick,
  },
}

/** The MD5 of a text, as 32 hexadecimal digits, the same as `md5` gives in every dialect. */
export const md5Of = (text: string): string => hash('md5', text)

/** The hashes of an id and of its version. They determine the bucket and are added up. */
export const hashSql = ({ md5, hexNumber, text }: Dialect) => ({
  bucket: (id: string, bucketCount: number): string =>
    `MOD(${hexNumber(`SUBSTRING(${md5(id)}, 1, 15)`)}, ${bucketCount})`,
  id: (id: string): string => hexNumber(`SUBSTRING(${md5(id)}, 18, 15)`),
  version: (id: string, version: string): string =>
    hexNumber(`SUBSTRING(${md5(`${id} || ':' || CAST(${version} AS ${text})`)}, 1, 15)`),
})

/** The id of a row as text. `alias`: of the table in the statement, if it has one. */
export const idSql = ({ dialect: name, idType }: AuditedTable, alias: string | undefined, column: string): string => {
  const { quote, text, integer } = dialects[name]
  const value = `${alias === undefined ? '' : `${alias}.`}${quote(column)}`
  return idType === 'text' ? `TRIM(CAST(${value} AS ${text}))` : `CAST(CAST(${value} AS ${integer}) AS ${text})`
}

/**
 * The time of a row in milliseconds since 1970, read as UTC if it has no zone. `alias`: of the table in the statement.
 */
export const timeSql = ({ dialect: name, versionType }: AuditedTable, alias: string, column: string): string => {
  const dialect = dialects[name]
  const value = `${alias}.${dialect.quote(column)}`
  return versionType === 'millis' ? `CAST(${value} AS ${dialect.integer})` : dialect.millis(value, versionType)
}

/**
 * The zone of a table's times, if they have no zone themselves and it is not UTC. Its clocks show one hour in autumn
 * twice, so the expected times are converted to the zone, not the table's to UTC.
 */
export const clockZone = ({ versionType, timeZone }: AuditedTable): string | undefined =>
  versionType === 'timestamp' && timeZone !== 'UTC' ? timeZone : undefined

/** The clock of a zone. Times are milliseconds since 1970. */
export type ZoneClock = {
  /** The time that it shows, read as UTC. This is how tables without zones store it. */
  readonly show: (time: number) => number
  /** By how much it goes back if it shows this time twice, as in one hour in autumn; otherwise 0. */
  readonly goBack: (time: number) => number
}

const threeHours = 10_800_000

/** `zone`: defaults to UTC. */
export const createClock = (zone: string | undefined): ZoneClock => {
  const show = createShow(zone)
  return {
    show,
    goBack: (time) => {
      const back = show(time - threeHours) - show(time + threeHours) + 2 * threeHours
      const isTwice = [time - back, time + back].some((other) => show(other) === show(time))
      return back > 0 && isTwice ? back : 0
    },
  }
}

const createShow = (zone: string | undefined): ZoneClock['show'] => {
  if (zone === undefined) return (millis) => millis
  const format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' })
  const offsets = new Map<number, number>()
  return (millis) => {
    // No zone changes its clocks within a quarter of an hour.
    const quarter = Math.floor(millis / 900_000)
    const known = offsets.get(quarter)
    if (known !== undefined) return millis + known
    const [, sign, hours = 0, minutes = 0, seconds = 0] =
      /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(format.format(quarter * 900_000)) ?? []
    const size = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000
    if (offsets.size >= 10_000) offsets.clear()
    offsets.set(quarter, sign === '-' ? -size : size)
    return millis + (sign === '-' ? -size : size)
  }
}

/** A scalar in a record, by its path. A count is the number of elements in a list. */
export type ContentField = {
  readonly path: ReadonlyArray<string>
  readonly kind: 'text' | 'integer' | 'number' | 'boolean' | 'time' | 'count'
}

/** The content of a row to compare. `keys`: the fields that distinguish the rows of one review. */
export type AuditedContent = { readonly fields: ReadonlyArray<ContentField>; readonly keys: ReadonlyArray<string> }

/** The warehouse's table, and how its loader stores a stream. */
export type AuditedTable = {
  readonly dialect: DialectName
  /** As written in SQL, such as `public.reviews`. */
  readonly name: string
  readonly idColumn: string
  readonly idType: IdType
  readonly versionColumn: string
  readonly versionType: TimeType
  /** The zone of versions without one, such as `UTC`. */
  readonly timeZone: string
  /** The loader writes all column names in lower case. */
  readonly isLowerCase: boolean
  /** The column that marks deleted rows; undefined if rows are not marked. */
  readonly deletedColumn: string | undefined
  /** The table of deletions that its readers apply to this one, as written in SQL. */
  readonly deletionsName: string | undefined
  /**
   * one: one row per review. newest: all versions of a review, of which only the newest counts. parts: several rows for
   * its newest version.
   */
  readonly rows: 'one' | 'newest' | 'parts'
  /** What is compared beside id, version and number of rows. */
  readonly content?: AuditedContent
}

/** A loader's defaults, used if no option overrides them. */
export const loaderNames = ['airbyte', 'pyairbyte', 'meltano', 'snapshot'] as const
type LoaderName = (typeof loaderNames)[number]

const loaders: Readonly<
  Record<LoaderName, Pick<AuditedTable, 'idType' | 'versionType' | 'deletedColumn' | 'isLowerCase'>>
> = {
  airbyte: { idType: 'number', versionType: 'timestamptz', deletedColumn: '_ab_cdc_deleted_at', isLowerCase: false },
  pyairbyte: { idType: 'number', versionType: 'timestamp', deletedColumn: '_ab_cdc_deleted_at', isLowerCase: true },
  meltano: { idType: 'number', versionType: 'timestamp', deletedColumn: '_sdc_deleted_at', isLowerCase: false },
  snapshot: { idType: 'number', versionType: 'timestamptz', deletedColumn: undefined, isLowerCase: false },
}

/** The name of the column for a stream's attribute, as the table's loader spells it. */
export const attributeColumn = ({ isLowerCase }: Pick<AuditedTable, 'isLowerCase'>, attribute: string): string =>
  isLowerCase ? attribute.toLowerCase() : attribute

const versionColumns: Readonly<Record<string, string>> = {
  reviews: 'modifiedTime',
  deleted_reviews: 'modifiedTime',
  comments: 'mentionTime',
  transparency_reviews: 'mentionTime',
}

/**
 * The table of a stream. Missing options default to what its loader does. `hasTombstones`: deleted reviews are marked
 * in their table.
 */
export const toAuditedTable = (
  stream: string,
  loader: LoaderName,
  {
    hasTombstones,
    keepsVersions,
    ...given
  }: Pick<AuditedTable, 'dialect' | 'name'> &
    Partial<
      Pick<
        AuditedTable,
        'idColumn' | 'idType' | 'versionColumn' | 'versionType' | 'deletedColumn' | 'deletionsName' | 'timeZone'
      >
    > & {
      readonly hasTombstones: boolean
      /** The table has all versions of a review. */
      readonly keepsVersions: boolean
    },
): AuditedTable => {
  const isPart = stream.startsWith('review_')
  const { deletedColumn, ...layout } = loaders[loader]
  return {
    ...layout,
    idColumn: attributeColumn(layout, isPart ? 'reviewId' : stream === 'transparency_reviews' ? 'documentId' : 'id'),
    versionColumn: attributeColumn(layout, versionColumns[stream] ?? 'reviewModifiedTime'),
    ...(['categories', 'questions'].includes(stream) ? { idType: 'text' } : {}),
    // The tables of the parts have no such column.
    deletedColumn: hasTombstones && stream === 'reviews' ? deletedColumn : undefined,
    deletionsName: undefined,
    timeZone: 'UTC',
    rows: isPart ? 'parts' : keepsVersions ? 'newest' : 'one',
    ...given,
  }
}

const tableNamePart = '(?:[\\p{L}_][\\p{L}\\p{N}_$-]*|"[^"\\p{Cc}]+"|`[^`\\p{Cc}]+`)'
const tableNamePattern = new RegExp(`^${tableNamePart}(?:\\.${tableNamePart}){0,3}$`, 'u')

/** True if a text is a table name in SQL: parts separated by dots, each bare or quoted. */
export const isTableName = (text: string): boolean => tableNamePattern.test(text)
