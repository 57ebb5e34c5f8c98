import { npiOf } from './feed'
import { createFront, type FrontTraits, type ServiceAnswer, type ServiceFault, type ServiceRequest } from './front'
import type { Chance } from './random'
import type { SimulatedService } from './service'

/** How a service that is written to answers. */
export type WritingTraits = {
  /** The most records of a request. */
  readonly clamp: number
  /** The status for a larger one. */
  readonly clampStatus: number
  /** Whether an empty batch is refused. */
  readonly refusesEmpty: boolean
  /** Whether the ids of an answer are in upper case. */
  readonly isLoud: boolean
  /** Whether the items of nonSyncableList are codes. */
  readonly listsCodes: boolean
  /** Whether a visit to an unknown location is an error. */
  readonly knowsCodes: boolean
}

type WrittenLocation = { readonly position: number; readonly isActive: boolean }

export type WrittenService = SimulatedService & {
  /** The e-mail addresses of the visits that it holds, by their ids. */
  readonly visits: ReadonlyMap<string, string>
  readonly locations: ReadonlyMap<string, WrittenLocation>
  readonly hasVisit: (email: string) => boolean
  /** Whether it has given a reason to reject this record, by its key. */
  readonly isRefused: (key: string) => boolean
}

type Item = Readonly<Record<string, unknown>>

const visitPath = '/api/service/visitrecord/create'
const locationPath = '/api/entity/sync/locations'

const toKey = (path: string, item: Item): string =>
  path === visitPath ? String(item.email) : `${item.code} ${item.city}`

/** A service that takes visits and locations. `words`: of patients. */
export const createWrittenService = (
  front: FrontTraits,
  traits: WritingTraits,
  now: () => number,
  chance: Chance,
  words: ReadonlyArray<string>,
  /** Hears of a visit to a location that is not there. */
  onUnknownCode: (code: string) => void,
): WrittenService => {
  const visits = new Map<string, string>()
  const emails = new Set<string>()
  const locations = new Map<string, WrittenLocation>()
  const refused = new Set<string>()
  const sentAlone = new Map<string, number>()
  /** The records that the last answer about them did not name. */
  const unnamed = new Set<string>()

  const isWrong = (item: Item, fate: 'error' | 'refused' | 'poison'): boolean =>
    item.npi === npiOf[fate] || String(item.city).endsWith(` ${fate}`)

  const saveVisit = (item: Item): boolean => {
    const isUnknown = traits.knowsCodes && !locations.has(String(item.locationCode))
    if (isUnknown) onUnknownCode(String(item.locationCode))
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
    if (isWrong(item, 'error')) {
      refused.add(toKey(locationPath, item))
      return false
    }
    locations.set(String(item.code), {
      position: Number(/^at (\d+)/.exec(String(item.city))?.[1]),
      isActive: item.active === true,
    })
    return true
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
      unnamed.delete(key)
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
    hasVisit: (email) => emails.has(email),
    isRefused: (key) => refused.has(key) || (sentAlone.get(key) ?? 0) >= 3,
  }
}
