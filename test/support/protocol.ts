import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ValidateFunction } from 'ajv'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'

/** The published schema of Airbyte's protocol, if it is beside the checkout. */
const protocolFile = join(__dirname, '..', '..', '..', 'shared', 'protocol', 'airbyte_protocol.yaml')

export const hasProtocol = existsSync(protocolFile)
if (!hasProtocol) process.stderr.write(`Skipped, lines against the protocol's schema: there is no ${protocolFile}\n`)

let cachedValidator: ValidateFunction | undefined
const createValidator = (): ValidateFunction => {
  const ajv = addFormats(new Ajv({ strict: false, allErrors: true }))
  ajv.addSchema({ ...parse(readFileSync(protocolFile, 'utf8')), $id: 'airbyte' })
  return ajv.compile({ $ref: 'airbyte#/definitions/AirbyteMessage' })
}

/** The errors of the lines of stdout as Airbyte messages, each once; none if all are valid. */
export const protocolErrors = (stdout: string): ReadonlyArray<string> => {
  cachedValidator ??= createValidator()
  const validate = cachedValidator
  const wrong = stdout
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) =>
      validate(JSON.parse(line))
        ? []
        : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`),
    )
  return [...new Set(wrong)]
}
