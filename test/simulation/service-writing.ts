import { npiOf } from './feed'
import { createFront, type FrontTraits, type ServiceAnswer, type ServiceFault, type ServiceRequest } from './front'
import type { Chance } from './random'
import type { SimulatedService } from './service'
import { answerPage, listPath } from './service-lists'

/** How a service that is written to answers. */
export type WritingTraits = {
  /** The most records of a request. */
  readonly clamp: number
  /** The status for a larger one. */
  readonly clampStatus: number
  /** An empty batch is refused. */
  readonly refusesEmpty: boolean
  /** The ids in an answer are in upper case. */
  readonly isLoud: boolean
  /** The items of nonSyncableList are codes. */
  readonly listsCodes: boolean
  /** A visit to an unknown location is an error. */
  readonly knowsCodes: boolean
  /** Its list of active locations; undefined: there is none. */
  readonly list?: ListingTraits
}

/** How a service lists its active locations. */
export type ListingTraits = {
  /** The most locations of a page. */
  readonly page: number
  /** It reports the number of pages. */
  readonly tellsPages: boolean
  /** A page after the last one is refused. */
  readonly refusesEnd: boolean
  /** How many milliseconds after a location was written the list shows it. */
  readonly lag: number
  /** The locations that others wrote. */
  readonly foreign: number
  /** How often one of those comes or goes after a page. */
  readonly churn: number
  /** Codes are compared and shown in lower case. */
  readonly isLowerCase: boolean
}

type WrittenLocation = { readonly position: number; readonly isActive: boolean; readonly codeType: string | null }

export type WrittenService = SimulatedService & {
  /** The e-mail addresses of the visits that it holds, by their ids. */
  readonly visits: ReadonlyMap<string, string>
  readonly locations: ReadonlyMap<string, WrittenLocation>
  readonly findLocation: (code: string) => WrittenLocation | undefined
  readonly hasVisit: (email: string) => boolean
  /** It has given a reason to reject the record with this key. */
  readonly isRefused: (key: string) => boolean
  /** A run begins. */
  readonly beginRun: () => void
  /** In this run, it has refused a page after the last one of its list while the run read the list for its plan. */
  readonly hasRefusedEnd: () => boolean
}

type Item = Readonly<Record<string, unknown>>

const visitPath = '/api/service/visitrecord/create'
const locationPath = '/api/entity/sync/locations'

/** What a service reports to the world. */
export type WritingWatch = {
  /** A visit to a location that is not there. */
  readonly onUnknownCode: (code: string, visit: string) => void
  /** Called for a location that is deactivated without a record asking for it. */
  readonly onDeactivation: (code: string) => void
}

const toKey = (path: string, item: Item): string =>
  path === visitPath ? String(item.email) : `${item.code} ${item.city}`

/** A service that takes visits and locations. `words`: of patients. */
export const createWrittenService = (
  front: FrontTraits,
  traits: WritingTraits,
  now: () => number,
  chance: Chance,
  words: ReadonlyArray<string>,
  { onUnknownCode, onDeactivation }: WritingWatch,
): WrittenService => {
  const { list } = traits
  const listing = chance.split('list')
  const visits = new Map<string, string>()
  const emails = new Set<string>()
  const locations = new Map<string, WrittenLocation>()
  /** What the list shows, and what it will show; by code. */
  const shown = new Map<string, { readonly code: string; readonly codeType: string | null; readonly city: string }>()
  let unshown: Array<{ readonly at: number; readonly code: string; readonly city: string }> = []
  const fold = (code: unknown): string => (list?.isLowerCase ? String(code).toLowerCase() : String(code))
  for (let i = 1; i <= (list?.foreign ?? 0); i += 1) {
    locations.set(fold(`F${i}`), { position: 0, isActive: true, codeType: null })
    shown.set(fold(`F${i}`), { code: fold(`F${i}`), codeType: null, city: '' })
  }
  const refused = new Set<string>()
  const sentAlone = new Map<string, number>()
  /**
   * The records that an answer of this run did not name, or the last answer of an earlier one. The answer that names
   * one may be lost, so it is left out of no later answer of the run: two of them in a row would be all that the
   * program hears.
   */
  const unnamed = new Set<string>()
  /** Those of them that a later answer of this run named. */
  const namedSince = new Set<string>()
  let hasRefusedEnd = false
  /**
   * This run has written locations. Before that it reads the list for its plan, and afterwards the one for
   * verification.
   */
  let hasWritten = false

  const isWrong = (item: Item, fate: 'error' | 'refused' | 'poison'): boolean =>
    item.npi === npiOf[fate] || String(item.city).endsWith(` ${fate}`)

  const saveVisit = (item: Item): boolean => {
    const isUnknown = traits.knowsCodes && !locations.has(fold(item.locationCode))
    if (isUnknown) onUnknownCode(String(item.locationCode), String(item.email))
    if (isUnknown || isWrong(item, 'error')) {
      refused.add(String(item.email))
      return false
    }
    const id = String(item.visitRecordId)
    if (!visits.has(id)) visits.set(id, String(item.email))
    emails.add(String(item.email))
    return true
  }
  const saveLocation = (item: Item): boolean => {
    hasWritten = true
    if (isWrong(item, 'error')) {
      refused.add(toKey(locationPath, item))
      return false
    }
    const code = fold(item.code)
    const known = locations.get(code)
    const position = /^at (\d+)/.exec(String(item.city))?.[1]
    if (position === undefined) onDeactivation(code)
    locations.set(code, {
      position: position === undefined ? (known?.position ?? 0) : Number(position),
      isActive: item.active === true,
      codeType: item.codeType === undefined ? null : String(item.codeType),
    })
    if (list !== undefined) unshown.push({ at: now() + list.lag, code, city: String(item.city ?? '') })
    return true
  }
  const updateShown = (): void => {
    for (const { code, city } of unshown.filter(({ at }) => at <= now())) {
      const { isActive = false, codeType = null } = locations.get(code) ?? {}
      if (isActive) shown.set(code, { code, codeType, city })
      else shown.delete(code)
    }
    unshown = unshown.filter(({ at }) => at > now())
  }
  /** Adds or removes a location that no record names. */
  const churn = (): void => {
    if (listing.happens(0.5))
      return void shown.delete([...shown.keys()].find((code) => fold(code).startsWith(fold('G'))) ?? '')
    const code = fold(`G${listing.between(1, 1e6)}`)
    shown.set(code, { code, codeType: null, city: '' })
  }
  const answerList = (
    path: string,
    { page: most, tellsPages, refusesEnd, churn: rate }: ListingTraits,
  ): ServiceAnswer => {
    updateShown()
    const rows = [...shown.values()].map(({ city, ...row }) => ({ id: row.code, ...row, city }))
    const pages = { clamp: most, refusesEnd, totals: tellsPages ? 'applied' : 'none' } as const
    const answer = answerPage(path.slice(listPath.length + 1), rows, pages, refuse)
    if (answer.status !== 200) hasRefusedEnd ||= !hasWritten
    else if (!isCalm() && listing.happens(rate)) churn()
    return answer
  }

  const answerVisits = (items: ReadonlyArray<Item>, isSilent: boolean): object => {
    const records: Record<string, string> = {}
    for (const item of items) {
      const key = String(item.email)
      const id = String(item.visitRecordId)
      if (isSilent && !unnamed.has(key) && chance.happens(0.5)) {
        unnamed.add(key)
        if (chance.happens(0.5)) saveVisit(item)
        continue
      }
      if (unnamed.has(key)) namedSince.add(key)
      records[traits.isLoud ? id.toUpperCase() : id] = saveVisit(item) ? 'Success' : 'Error'
    }
    return { status: { code: 200, message: 'OK' }, records }
  }
  const answerLocations = (items: ReadonlyArray<Item>, isSilent: boolean): object => {
    const failed = items.filter((item) => !saveLocation(item))
    if (isSilent && items.length === 1) for (const item of items) refused.add(toKey(locationPath, item))
    if (isSilent) return { status: 'PARTIAL_SUCCESS', totalRequests: items.length, failedRequests: 1 }
    return {
      status: failed.length === 0 ? 'SUCCESS' : 'PARTIAL_SUCCESS',
      nonSyncableList: traits.listsCodes ? failed.map(({ code }) => code) : failed,
      totalRequests: items.length,
      successfulRequests: items.length - failed.length,
      failedRequests: failed.length,
    }
  }

  const parseItems = ({ path, body }: ServiceRequest): ReadonlyArray<Item> => {
    const items = JSON.parse(body) as ReadonlyArray<Item>
    for (const item of items.length === 1 ? items : []) {
      const key = toKey(path, item)
      sentAlone.set(key, (sentAlone.get(key) ?? 0) + 1)
    }
    return items
  }
  const save = (path: string, item: Item): boolean => (path === visitPath ? saveVisit(item) : saveLocation(item))

  const respond = (request: ServiceRequest, fault: ServiceFault | undefined): ServiceAnswer | undefined => {
    const { path } = request
    if (list !== undefined && path.startsWith(`${listPath}?`)) return answerList(path, list)
    if (path !== visitPath && path !== locationPath) return undefined
    const items = parseItems(request)
    if (items.length === 0 && traits.refusesEmpty) return { status: 400, body: refuse(400, 'nothing was sent') }
    if (items.length > traits.clamp) return { status: traits.clampStatus, body: refuse(traits.clampStatus, 'too many') }
    if (items.some((item) => isWrong(item, 'refused'))) {
      if (items.length === 1) for (const item of items) refused.add(toKey(path, item))
      return { status: 400, body: refuse(400, `wrong: ${JSON.stringify(items[0])}`) }
    }
    if (!isCalm() && items.some((item) => isWrong(item, 'poison'))) {
      // It fails on its way through the batch.
      for (const item of items.slice(0, chance.between(0, items.length))) if (!isWrong(item, 'poison')) save(path, item)
      return { status: 500, body: refuse(500, 'internal') }
    }
    const isSilent = fault === 'rows unnamed' && items.length > 0
    const body = JSON.stringify(path === visitPath ? answerVisits(items, isSilent) : answerLocations(items, isSilent))
    return { status: 200, body }
  }

  const { isCalm, refuse, ...shared } = createFront(front, now, chance, {
    words,
    respond,
    takeUnanswered: (request) => {
      if (request.path !== visitPath && request.path !== locationPath) return
      if (chance.happens(0.5)) respond(request, undefined)
      else parseItems(request)
    },
  })
  return {
    ...shared,
    change: () => undefined,
    allowChurn: () => undefined,
    words: () => words,
    visits,
    locations,
    findLocation: (code) => locations.get(fold(code)),
    hasVisit: (email) => emails.has(email),
    beginRun: () => {
      for (const key of namedSince) unnamed.delete(key)
      namedSince.clear()
      hasRefusedEnd = false
      hasWritten = false
    },
    hasRefusedEnd: () => hasRefusedEnd,
    isRefused: (key) => refused.has(key) || (sentAlone.get(key) ?? 0) >= 3,
  }
}
