import * as t from 'io-ts'
import { Content, describeAttribute, optionalAttributes, questionKinds } from '../api'
import { defineStream, type NamesDerivation, type Row } from '../cdk'
import { type FieldOffset, fieldText, hasField, rawFieldText } from '../export'
import { dimensionStreamOptions, maxFilterEntries, reviewModifiedTime } from './review-dimensions'
import type { ReviewItem } from './review-item'

/** Accepts each key once. */
export const createNameFilter = () => {
  const known = new Set<string>()
  return (name: string): boolean => {
    if (known.has(name)) return false
    if (known.size >= maxFilterEntries) known.clear()
    known.add(name)
    return true
  }
}

const noName = 'null'
const mayBeBlank = /^"[\s\x80-\xff]*"$/

/**
 * A name as JSON text (latin1, from `rawFieldText`), the same however the service escapes it; null if absent or blank.
 */
const readName = (json: Uint8Array, at: FieldOffset | undefined): string => {
  if (!hasField(json, at)) return noName
  const raw = rawFieldText(json, at)
  // In UTF-8, no byte of a space beyond ASCII looks like a space.
  if (!raw.includes('\\')) return mayBeBlank.test(raw) && fieldText(json, at).trim() === '' ? noName : raw
  const text = fieldText(json, at)
  return text.trim() === '' ? noName : Buffer.from(JSON.stringify(text)).toString('latin1')
}

/**
 * The key of names: one text that is never empty, since some destinations treat an empty text as null. The names are
 * JSON texts, not all null; each ">" in them is doubled so that different names give different keys.
 */
const joinNames = (names: ReadonlyArray<string>, hasKey: boolean): string => {
  const [first, ...others] = names.map((name) =>
    name === noName ? undefined : name.slice(1, -1).replaceAll('>', '>>'),
  )
  if (hasKey && first !== undefined) return first
  const rest = others.flatMap((name, i) => {
    const text = hasKey && i === 0 ? (name ?? '') : name
    return text === undefined ? [] : [`> ${text}`]
  })
  return [...(first === undefined ? [] : [first]), ...rest].join(' ')
}

const kindOf = ({ values }: NonNullable<NamesDerivation['kind']>, name: string): string | null => {
  const text = String(JSON.parse(Buffer.from(name, 'latin1').toString()) ?? '')
  const folded = text.replace(/^ +| +$/g, '').toLowerCase()
  return Object.hasOwn(values, folded) ? (values[folded] ?? null) : null
}

/** An object of a review with the offsets of the members that streams read. */
type Part = {
  readonly members?: Readonly<Record<string, (FieldOffset & Part) | undefined>>
  readonly elements?: ReadonlyArray<FieldOffset & Part>
}

/** One row for each key among the objects in a run's reviews, made from the first object with it. */
const createNamesProjector =
  ({ steps, names, hasKey, kind }: NamesDerivation) =>
  () => {
    // Most objects have a combination of names that was seen before, so their key need not be built.
    const [isNewCombination, isNewKey] = [createNameFilter(), createNameFilter()]
    return ({ readFields }: ReviewItem): ReadonlyArray<Row> => {
      const { json, members, modifiedTimeMember } = readFields()
      const review: Part = { members: members as NonNullable<Part['members']> }
      const objects = steps.reduce<ReadonlyArray<Part>>(
        (parts, { name }) => parts.flatMap((part) => part.members?.[name]?.elements ?? []),
        [review],
      )
      return objects.flatMap((object) => {
        const texts = names.map((name) => readName(json, object.members?.[name]))
        if (texts.every((text) => text === noName) || !isNewCombination(texts.join())) return []
        const id = joinNames(texts, hasKey)
        if (!isNewKey(id)) return []
        const kindText = kind && JSON.stringify(kindOf(kind, texts[names.indexOf(kind.of)] ?? noName))
        const attributes = [
          `"id":"${id}"`,
          ...names.map((name, i) => `"${name}":${texts[i]}`),
          ...(kind === undefined ? [] : [`"${kind.column}":${kindText}`]),
          modifiedTimeMember,
        ]
        return [{ json: Buffer.from(`{${attributes.join()}}`, 'latin1') }]
      })
    }
  }

const namesStreamOptions = (derivation: NamesDerivation) => ({
  ...dimensionStreamOptions,
  derivation: { _tag: 'names' as const, ...derivation },
  projector: createNamesProjector(derivation),
})

const contents = { name: 'contents', isList: true }

const ReviewCategory = t.intersection(
  [
    t.type({
      reviewModifiedTime,
      id: describeAttribute('The category, or the category, " > " and the sub-category; never empty')(t.string),
    }),
    optionalAttributes({
      category: describeAttribute('Category of the feature an opinion is about')(t.string),
      subCategory: describeAttribute('Its sub-category')(t.string),
    }),
  ],
  'Category',
)

export const categoriesStream = defineStream({
  ...namesStreamOptions({
    steps: [contents, { name: 'sentiments', isList: true }],
    names: ['category', 'subCategory'],
    hasKey: false,
  }),
  name: 'categories',
  codec: ReviewCategory,
  primaryKey: ['id'],
})

const { questionCode, question, questionType } = Content.props

const ReviewQuestion = t.intersection(
  [
    t.type({
      reviewModifiedTime,
      id: describeAttribute('The question code, or else "> ", the question, " > " and its type; never empty')(t.string),
    }),
    // Null is already among their values.
    t.partial({ questionCode, question, questionType }),
    optionalAttributes({
      kind: describeAttribute(
        'Kind of answer: promoter (0 to 10), number, date, choice or text; null for an unknown type',
      )(t.string),
    }),
  ],
  'Question',
)

export const questionsStream = defineStream({
  ...namesStreamOptions({
    steps: [contents],
    names: ['questionCode', 'question', 'questionType'],
    hasKey: true,
    kind: { column: 'kind', of: 'questionType', values: questionKinds },
  }),
  name: 'questions',
  codec: ReviewQuestion,
  primaryKey: ['id'],
})
