import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the stand-ins keep what must survive a call: volumes, secrets, jobs. */
const home = (...parts) => {
  mkdirSync(join(process.env.STANDIN_HOME, ...parts), { recursive: true })
  return join(process.env.STANDIN_HOME, ...parts)
}
export const keep = (kind, name) => join(home(kind), name)
export const volume = (name) => (name.startsWith('/') ? name : home('volumes', name))

export const fail = (reason) => {
  process.stderr.write(`${reason}\n`)
  process.exit(1)
}

export const readEnv = (file) =>
  Object.fromEntries(
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  )

/**
 * Runs on this machine what the image would run: its entry point, another of its commands or a shell, with only the
 * given environment, and with paths below a mount mapped to this machine.
 */
export const runContainer = ({ entrypoint = 'source-feedback', args, env, mounts }, stdio) => {
  const start = (own) => ({ cwd: home('empty'), env: { PATH: process.env.PATH, ...own }, stdio })
  if (entrypoint === 'sh') {
    const moved = (text) => mounts.reduce((all, { source, target }) => all.replaceAll(target, volume(source)), text)
    return spawnSync('sh', args.map(moved), start(env))
  }
  const here = (text) => {
    const mount = mounts.find(({ target }) => text === target || text.startsWith(`${target}/`))
    return mount === undefined ? text : volume(mount.source) + text.slice(mount.target.length)
  }
  const variables = Object.entries(env).map(([name, value]) => [name, name.endsWith('_FILE') ? here(value) : value])
  const lost = args.find((arg) => arg.startsWith('/') && here(arg) === arg)
  if (lost !== undefined) fail(`${lost} is below no mount`)
  const program = join(process.env.STANDIN_BUILD, 'bin', `${entrypoint}.js`)
  return spawnSync(process.execPath, [program, ...args.map(here)], start(Object.fromEntries(variables)))
}
