import { join, resolve } from 'node:path'

const build = resolve(process.env.BENCH_BUILD ?? join(import.meta.dirname, '..', 'build'))

/** The compiled program with this name. BENCH_BUILD names a folder other than build/. */
export const bin = (name) => join(build, 'bin', `${name}.js`)
