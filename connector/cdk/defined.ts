/** An object's members that may be left out instead of being undefined. */
type Defined<A> = { readonly [K in keyof A]?: Exclude<A[K], undefined> }

/** The members that are not undefined: `{ ...defined({ limit }) }` has a `limit` only where there is one. */
export const defined = <A extends object>(members: A): Defined<A> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<A>

/** `f` of a value that is there; undefined otherwise. */
export const mapDefined = <A, B>(value: A | undefined, f: (value: A) => B): B | undefined =>
  value === undefined ? undefined : f(value)
