import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { join } from 'node:path'

/** A safeguard of the product and how to remove it from a built file: `find` must be there once. */
type Defect = { readonly file: string; readonly find: string; readonly replace: string }

/** Each safeguard whose loss the simulation has to notice, by name. */
export const defects: Readonly<Record<string, Defect>> = {
  'no overlap': {
    file: 'export/scan/state.js',
    find: '{ overlap: true, witness: true, halving: true }',
    replace: '{ overlap: false, witness: true, halving: true }',
  },
  'no lookback': { file: 'export/scan/cutoff.js', find: 'cursor.value - lookback)', replace: 'cursor.value)' },
  'state before rows': {
    file: 'streams/export-reader.js',
    find: '        yield* rowEvents(streams, item.rows, toItem);\n        for (const stream of streams)\n            yield toCheckpoint(source, digest, stream, item);',
    replace:
      '        for (const stream of streams)\n            yield toCheckpoint(source, digest, stream, item);\n        yield* rowEvents(streams, item.rows, toItem);',
  },
  'rate too high': {
    file: 'api/http/rate-limit.js',
    find: 'Math.ceil(61_000 / perMinute)',
    replace: 'Math.ceil(50_000 / perMinute)',
  },
  'Retry-After for the refused request alone': {
    file: 'api/http/rate-limit.js',
    find: 'pausedUntil = Math.max(pausedUntil, clock.ticks() + pause);',
    replace: ';',
  },
  'Retry-After ignored': {
    file: 'api/http/request.js',
    find: "headers['retry-after'] ?? ''",
    replace: "''",
  },
  'secrets in errors': {
    file: 'api/http/send.js',
    find: 'const text = [status.message, status.code]',
    replace: 'return String(status.message); const text = [status.message, status.code]',
  },
  'no response time-out': {
    file: 'api/http/transport.js',
    find: 'const timer = setTimeout(abort, responseSeconds * 1000);',
    replace: 'const timer = undefined;',
  },
  'a partial write taken for whole': {
    file: 'cdk/lines.js',
    find: 'block.from += written;',
    replace: 'block.from = block.to;',
  },
}

/** Loads the product without this safeguard from now on. */
export const injectDefect = (build: string, name: string): void => {
  const defect = defects[name]
  if (defect === undefined)
    throw new Error(`There is no defect "${name}". Choose among ${Object.keys(defects).join(', ')}.`)
  const path = join(build, defect.file)
  const source = readFileSync(path, 'utf8')
  if (source.split(defect.find).length !== 2) throw new Error(`${defect.file} does not have this once: ${defect.find}`)
  const prototype = Module.prototype as unknown as { _compile: (code: string, file: string) => unknown }
  const compile = prototype._compile
  prototype._compile = function (code, file) {
    return compile.call(this, file === path ? source.replace(defect.find, () => defect.replace) : code, file)
  }
}
