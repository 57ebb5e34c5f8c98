import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import manifest from '../../package.json'

export const root = join(__dirname, '../..')
export const folder = mkdtempSync(join(tmpdir(), 'release-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A repository with the current files of this checkout, ready for a release. Each test starts from it again. */
export const clone = join(folder, 'clone')
export const { name, version } = manifest
export const git = (...args: ReadonlyArray<string>) =>
  execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
    cwd: clone,
    encoding: 'utf8',
  }).trim()
export const edit = (path: string, pattern: string | RegExp, by: string) => {
  const before = readFileSync(join(clone, path), 'utf8')
  const after = before.replace(pattern, by)
  expect(after).not.toBe(before)
  writeFileSync(join(clone, path), after)
}

beforeAll(() => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of files.toString().split('\0').filter(Boolean)) {
    if (!existsSync(join(root, file))) continue
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(root, file), join(clone, file))
  }
  git('init', '--quiet')
  git('config', 'user.name', 'Test')
  git('config', 'user.email', 'test@example.com')
  edit('CHANGELOG.md', /^## .*$/m, `## ${version} (2026-01-02)`)
  git('add', '--all')
  git('commit', '--quiet', '--message', 'Release')
  git('tag', 'start')
})
beforeEach(() => {
  git('reset', '--quiet', '--hard', 'start')
  git('clean', '--quiet', '--force', '-d')
  for (const tag of git('tag', '--list', 'v*').split('\n').filter(Boolean)) git('tag', '--delete', tag)
})

export const release = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, ['scripts/release.mjs', ...args], {
      cwd: clone,
      env: { ...process.env, ...env },
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('close', (status) => resolve({ status, stdout, stderr }))
  })
