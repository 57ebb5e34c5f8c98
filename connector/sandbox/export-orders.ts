/** In which order an export is served; none is promised by the service. `ties`: a new random order among equal times at every request. */
export const exportOrders = ['modified_asc', 'modified_desc', 'id', 'ties'] as const
export type ExportOrder = (typeof exportOrders)[number]

/** The order as SQL; `nonce` changes with every request. */
export const orderClause = (order: ExportOrder, nonce: number): string =>
  ({
    modified_asc: 'modified, id',
    modified_desc: 'modified DESC, id DESC',
    id: 'id',
    ties: `modified, hash(id + ${nonce * 7919})`,
  })[order]
