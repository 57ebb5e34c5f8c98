import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import * as E from 'fp-ts/Either'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  findNearestName,
  type ParsedOptions,
  takeUntilAbort,
  usageError,
} from '../cdk'
import { sourceFormat } from '../config'
import { createSource } from '../runtime'
import { formatNextSteps, variablePrefix } from './options'
import { formatJson } from './table'

/** The types of credentials, with the secret key of each and how to ask for it. */
const credentialKinds = {
  access_token: { secretKey: 'access_token', secretName: 'access token' },
  application: { secretKey: 'application_secret', secretName: 'application secret' },
} as const

type CredentialKind = keyof typeof credentialKinds

const options = {
  out: { type: 'string', value: 'FILE', help: 'The file to write; default secrets/config.json' },
  'base-url': { type: 'string', value: 'URL', help: 'Address of the service' },
  'start-date': { type: 'string', value: 'DATE', help: 'Read reviews since this date or time, such as 2024-01-31' },
  auth: { type: 'string', value: 'access_token|application', help: 'The type of credentials; default access_token' },
  'application-id': { type: 'string', value: 'ID', help: 'With --auth application: its id' },
  'token-url': {
    type: 'string',
    value: 'URL',
    help: 'With --auth application: where tokens are issued; the usual path if left out',
  },
  'secret-in': {
    type: 'string',
    value: 'env|file',
    help:
      'Where to keep the token or secret: in a variable, or in the file, which only you can read; default file ' +
      'if one is given, else env',
  },
  'secret-file': { type: 'string', value: 'FILE', help: 'Take the token or secret from this file; - is stdin' },
  force: { type: 'boolean', help: 'Replace an existing file' },
  json: { type: 'boolean', help: 'Print the outcome as JSON' },
} as const

type InitOptions = ParsedOptions<typeof options>['options']

export const initCommand = defineCommand({
  name: 'init',
  summary: 'Writes a configuration, and asks for what the options leave out.',
  options,
  examples: [
    'feedback init',
    'feedback init --base-url https://feedback.example.com --start-date 2024-01-31 --secret-in env',
    'feedback init --out config.json --base-url https://feedback.example.com ' +
      '--start-date 2024-01-31 --secret-file token.txt',
  ],
  notes: [
    'A token or secret is never an option, since other users of a machine can see options. ' +
      'Without --secret-file it is taken from',
    `${variablePrefix}_CREDENTIALS_ACCESS_TOKEN or ${variablePrefix}_CREDENTIALS_APPLICATION_SECRET, ` +
      'or asked for on a terminal. The file has the mode 600.',
  ].join('\n'),
  run: async (io, { options: given }) => {
    const path = given.out ?? 'secrets/config.json'
    if (existsSync(path) && !given.force)
      throw new CommandError(configFailure(`${path} exists. Give another file with --out, or --force to replace it.`))
    const ask = createPrompter(io)
    const baseUrl = await askValid(ask, given['base-url'], 'Address of the service (base_url)', '--base-url', (value) =>
      findProblem({ base_url: value }),
    )
    const startDate = await askValid(
      ask,
      given['start-date'],
      'Read reviews since which date, such as 2024-01-31 (start_date)',
      '--start-date',
      (value) => findProblem({ start_date: value }),
    )
    const kind = await askKind(ask, given.auth)
    const more = kind === 'application' ? await askApplication(ask, given) : {}
    const { secretKey } = credentialKinds[kind]
    const variable = `${variablePrefix}_CREDENTIALS_${secretKey.toUpperCase()}`
    const secret = await takeSecret(io, ask, given, { variable, name: credentialKinds[kind].secretName })
    const config = {
      base_url: baseUrl,
      credentials: { auth_type: kind, ...more, ...(secret === undefined ? {} : { [secretKey]: secret }) },
      start_date: startDate,
    }
    await writePrivateFile(path, formatJson(config), given.force)
    const configArgs = `--config ${path}${secret === undefined ? ' --config ENV' : ''}`
    const next = [`feedback check ${configArgs}`, `feedback sync ${configArgs} --db reviews.duckdb`]
    if (given.json)
      await io.print(formatJson({ config: path, secret_in: secret === undefined ? 'env' : 'file', variable, next }))
    else await io.print(formatOutcome(path, secret === undefined ? variable : undefined, next))
    return 0
  },
})

const formatOutcome = (path: string, variable: string | undefined, next: ReadonlyArray<string>): string =>
  `${
    variable === undefined
      ? `${path} is written. Only you can read it.`
      : `${path} is written, without a secret: set the variable ${variable}.`
  }\n${formatNextSteps(next)}`

/** The problem with part of a configuration, assuming that the rest is correct. */
const findProblem = (part: object): string | undefined => {
  const credentials = { auth_type: 'access_token', access_token: 'x' }
  const decoded = sourceFormat.decode({
    base_url: 'https://example.com',
    credentials,
    start_date: '2024-01-01',
    ...part,
  })
  if (E.isLeft(decoded)) return decoded.left.message
  const created = createSource(decoded.right.config, { proxyVariables: {} })
  if (E.isLeft(created)) return created.left.message
  void created.right.close()
  return undefined
}

/** Asks a question on the terminal; undefined if there is none. `isSecret`: the answer is not echoed. */
type Prompter = {
  readonly ask: ((question: string, isSecret?: boolean) => Promise<string>) | undefined
  readonly say: (line: string) => void
}

const createPrompter = (io: CommandIo): Prompter => {
  if (!io.isInteractive) return { ask: undefined, say: io.printWarning }
  const readLine = createLineReader(takeUntilAbort(io.stop, io.stdin))
  return {
    say: io.printWarning,
    ask: async (question, isSecret = false) => {
      // Set before the question is printed, because a secret may be pasted as soon as it appears.
      io.setEcho(!isSecret)
      try {
        io.printWarning(`${question}:`)
        return (await readLine()).trim()
      } finally {
        io.setEcho(true)
      }
    },
  }
}

/** Reads lines as a terminal sends them, edited or key by key. */
const createLineReader = (input: AsyncIterable<Uint8Array>): (() => Promise<string>) => {
  const chunks = input[Symbol.asyncIterator]()
  const decoder = new TextDecoder()
  let pending: ReadonlyArray<string> = []
  return async () => {
    const line: string[] = []
    for (;;) {
      for (const [i, key] of pending.entries()) {
        if (key === '\u0003' || key === '\u0004') throw usageError('Nothing was written.')
        if (key === '\r' || key === '\n') {
          pending = pending.slice(i + 1)
          return line.join('')
        }
        if (key === '\u007f' || key === '\b') line.pop()
        else if (key === '\u0015') line.length = 0
        else if (key >= ' ') line.push(key)
      }
      const next = await chunks.next()
      if (next.done === true)
        throw usageError('The input ended before every question was answered. Nothing was written.')
      // An arrow key would otherwise become part of a secret that nobody can see.
      pending = [...stripVTControlCharacters(decoder.decode(next.value, { stream: true }))]
    }
  }
}

/** The given value, or the first valid answer to the question. Enter, or a missing terminal, means the default. */
const askValid = async (
  { ask, say }: Prompter,
  given: string | undefined,
  question: string,
  option: string,
  problemOf: (value: string) => string | undefined,
  defaultValue?: string,
): Promise<string> => {
  if (given !== undefined) {
    const problem = problemOf(given)
    if (problem !== undefined) throw usageError(`${option} is wrong. ${problem}`)
    return given
  }
  if (ask === undefined) {
    if (defaultValue !== undefined) return defaultValue
    throw usageError(`${option} is missing, and there is no terminal to ask on. See feedback init --help.`)
  }
  const shownDefault = defaultValue === undefined ? '' : ` [${defaultValue}]`
  for (;;) {
    const value = (await ask(`${question}${shownDefault}`)) || (defaultValue ?? '')
    const problem = problemOf(value)
    if (problem === undefined) return value
    say(problem)
  }
}

const isCredentialKind = (text: string): text is CredentialKind => Object.hasOwn(credentialKinds, text)

const askKind = async (prompter: Prompter, given: string | undefined): Promise<CredentialKind> => {
  const kinds = Object.keys(credentialKinds)
  const value = await askValid(
    prompter,
    given,
    'access_token, or application for an id with a secret that are exchanged for tokens (auth)',
    '--auth',
    (text) => (findNearestName(text, kinds) === undefined ? `Give one of ${kinds.join(', ')}.` : undefined),
    'access_token',
  )
  const kind = findNearestName(value, kinds) ?? ''
  return isCredentialKind(kind) ? kind : 'access_token'
}

const askApplication = async (prompter: Prompter, given: InitOptions) => {
  const findCredentialProblem = (part: object) =>
    findProblem({
      credentials: {
        auth_type: 'application',
        application_id: 'x',
        application_secret: 'x',
        ...part,
      },
    })
  return {
    application_id: await askValid(prompter, given['application-id'], 'Application id', '--application-id', (value) =>
      findCredentialProblem({ application_id: value }),
    ),
    ...(given['token-url'] === undefined
      ? {}
      : {
          token_url: await askValid(
            prompter,
            given['token-url'],
            'Address at which tokens are issued (token_url)',
            '--token-url',
            (value) => findCredentialProblem({ token_url: value }),
          ),
        }),
  }
}

/** The secret to write into the file; undefined if a variable holds it. */
const takeSecret = async (
  io: CommandIo,
  prompter: Prompter,
  given: InitOptions,
  { variable, name }: { readonly variable: string; readonly name: string },
): Promise<string | undefined> => {
  const file = given['secret-file']
  const place =
    given['secret-in'] ??
    (file !== undefined
      ? 'file'
      : await askValid(
          prompter,
          undefined,
          `Keep the ${name} in a variable (env) or in the file, which only you can read (file)`,
          '--secret-in',
          (text) => (text === 'env' || text === 'file' ? undefined : 'Give env or file.'),
          'env',
        ))
  if (place === 'env') return undefined
  if (place !== 'file') throw usageError('--secret-in must be env or file.')
  const text = (file === undefined ? io.env[variable] : await readSecret(io, file))?.trim()
  const secret = text === undefined || text === '' ? await prompter.ask?.(`The ${name}; it is not shown`, true) : text
  if (secret === undefined || secret === '')
    throw usageError(
      `The ${name} is missing: give --secret-file FILE, set ${variable}, or keep it there with --secret-in env.`,
    )
  io.addSecrets([secret])
  return secret
}

const readSecret = async (io: CommandIo, path: string): Promise<string> => {
  if (path === '-') {
    const chunks: Uint8Array[] = []
    for await (const chunk of takeUntilAbort(io.stop, io.stdin)) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(configFailure(`The file ${path} of --secret-file cannot be read (${error.code}).`))
  })
}

/** Writes a file that only its owner can read. Replaces an existing file only if `replace` is set. */
const writePrivateFile = async (path: string, text: string, replace: boolean): Promise<void> => {
  const target = replace ? `${path}.tmp` : path
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    if (replace) await rm(target, { force: true })
    await writeFile(target, text, { mode: 0o600, flag: 'wx' })
    if (replace) await rename(target, path)
  } catch (error) {
    throw new CommandError(configFailure(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}).`))
  }
}
