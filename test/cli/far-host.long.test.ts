import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { programPath } from '../support/program'
import { missingRedis } from '../support/redis'

const noNetwork =
  spawnSync('unshare', ['-n', '-m', 'sh', '-c', 'test -c /dev/net/tun && ip link set lo up && python3 -c 1']).status !==
  0
if (noNetwork) console.warn('The test of far hosts is skipped: it needs root, unshare, ip, /dev/net/tun and python3.')

test.skipIf(noNetwork)(
  'a far host is reached, and a far Redis, although its other address has no route',
  { timeout: 60_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'far-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost\n10.99.0.2 far.test\n2001:db8::1 far.test\n')
    const args = [join(__dirname, 'far-host.mjs'), folder, programPath('source-feedback'), missingRedis ? '' : 'redis']
    const script = `ip link set lo up && mount --bind ${folder}/hosts /etc/hosts && exec "$@"`
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/proxy$/i.test(name)))
    const ran = spawnSync('unshare', ['-n', '-m', 'sh', '-c', script, 'sh', process.execPath, ...args], {
      encoding: 'utf8',
      env,
    })
    expect(ran.status, ran.stderr).toBe(0)
    const checks = ran.stdout.trim().split('\n')
    expect(checks).toHaveLength(missingRedis ? 1 : 2)
    for (const check of checks) expect(check).toContain('SUCCEEDED')
  },
)
